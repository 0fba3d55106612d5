"""Depth is measured without recursion, and numbers are such that can be kept."""

import math
from typing import Any

import pytest

from reflexio.models.interaction import ToolUsed
from reflexio.models.wire import MAX_DEPTH, is_deeper


def nested(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = {"a": value} if level % 2 else [value]
    return value


@pytest.mark.parametrize("levels", [0, 1, 2, 31, 32, 33, 100_000])
def test_depth_is_exact(levels: int) -> None:
    value = nested(levels)
    if levels:
        assert is_deeper(value, min(levels, 64) - 1)
    assert is_deeper(value, 64) == (levels > 64)
    if levels <= 64:
        assert not is_deeper(value, levels)


@pytest.mark.parametrize("empty", [{}, []])
def test_an_empty_container_is_a_level(empty: Any) -> None:
    assert is_deeper(empty, 0)
    assert not is_deeper(empty, 1)


def test_tool_data_may_be_as_deep_as_it_says() -> None:
    ToolUsed(tool_name="t", tool_data={"a": nested(MAX_DEPTH - 1)})
    with pytest.raises(ValueError, match="nested deeper than 32 levels"):
        ToolUsed(tool_name="t", tool_data={"a": nested(MAX_DEPTH)})


@pytest.mark.parametrize("number", [2**64 - 1, -(2**63), 0, True, 1.5, -1e308])
def test_tool_data_may_hold_what_can_be_kept(number: float) -> None:
    assert ToolUsed(tool_name="t", tool_data={"a": [{"b": number}]}).tool_data == {"a": [{"b": number}]}


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**400, math.nan, math.inf, -math.inf])
def test_a_number_that_cannot_be_kept_is_an_error(number: float) -> None:
    with pytest.raises(ValueError, match="integers have up to 64 bits, others are finite"):
        ToolUsed(tool_name="t", tool_data={"a": [{"b": number}]})
