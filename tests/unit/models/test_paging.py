"""Cursors come back as the places they stand for, and nothing else is a cursor."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexio.models.paging import MOST, Position, page

WHOLE = st.integers(0, 2**63 - 1)


@given(at=WHOLE, row=WHOLE)
def test_a_cursor_stands_for_its_place(at: int, row: int) -> None:
    assert Position.read(Position(at, row).cursor()) == Position(at, row)


@given(st.text(max_size=40))
def test_other_texts_are_refused_or_are_cursors(text: str) -> None:
    try:
        found = Position.read(text)
    except ValueError as error:
        assert "not a cursor of this server" in str(error)  # noqa: PT017  both outcomes are fine
    else:
        assert found.cursor() == text


def test_a_page_is_bounded() -> None:
    assert page(10**12, None).limit == MOST
    assert page(3, None).after is None


@pytest.mark.parametrize("size", [1, MOST])
def test_a_page_keeps_a_modest_limit(size: int) -> None:
    assert page(size, None).limit == size
