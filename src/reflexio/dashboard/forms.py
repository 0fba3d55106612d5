"""From the fields of a form or an address to the requests of the API, with the same limits and words for mistakes."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from reflexio.errors import InvalidRequest

M = TypeVar("M", bound=BaseModel)
MOST_NAMED = 5


def parse(model: type[M], values: Mapping[str, object]) -> M:
    """Raises InvalidRequest that names the fields which are not valid."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise InvalidRequest(describe(error)) from None


def describe(error: ValidationError) -> str:
    """The first invalid fields: where each is, and what is wrong with it."""
    lines = []
    for fault in error.errors()[:MOST_NAMED]:
        place, words = ".".join(map(str, fault["loc"])).replace("_", " "), fault["msg"].removeprefix("Value error, ")
        lines.append(f"{place}: {words}" if place else words)
    return "; ".join(lines) + "."


def whole_number(text: str, default: int, *, least: int, most: int) -> int:
    """A number within bounds from a text that a person may have written into the address.

    >>> whole_number("7", 30, least=1, most=366), whole_number("x", 30, least=1, most=366)
    (7, 30)
    """
    if not (text.isascii() and text.isdecimal()) or len(text) > 18:
        return default
    return max(least, min(most, int(text)))


def options(all_of_them: str, names: Iterable[str], chosen: str) -> list[tuple[str, str]]:
    """The options of a filter: all, then each name. What was chosen is among them, whatever is known.

    >>> options("All", ["v2", ""], "v1")
    [('', 'All'), ('v1', 'v1'), ('v2', 'v2')]
    """
    return [("", all_of_them), *((name, name) for name in sorted({chosen, *names} - {""}))]
