"""Words for where a learning stands."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from reflexio import ProfileTimeToLive, Status
from reflexio.models.learning import WireStatus

WIRE = TypeAdapter(list[WireStatus])


@pytest.mark.parametrize("word", [None, "None", "current", Status.CURRENT])
def test_current_has_many_names(word: Any) -> None:
    assert WIRE.validate_python([word]) == [Status.CURRENT]


def test_current_is_null_on_the_wire() -> None:
    assert WIRE.dump_json([Status.CURRENT, Status.PENDING]) == b'[null,"pending"]'


def test_an_unknown_word_is_refused() -> None:
    with pytest.raises(ValidationError):
        WIRE.validate_python(["gone"])


def test_only_infinity_never_ends() -> None:
    assert [each for each in ProfileTimeToLive if each.seconds is None] == [ProfileTimeToLive.INFINITY]
    assert ProfileTimeToLive.ONE_DAY.seconds == 86_400
