"""How many values and unknown fields a body may hold. Counted first: many small values take the server, which answers
everybody on one thread, a hundred times as long as one text of the same size.
"""

from functools import cache
from typing import Any

from pydantic import BaseModel
from starlette.exceptions import HTTPException

MOST_VALUES = 200_000
"""Commas, colons and opening brackets outside of texts. A publish of 1,000 turns with tools has some 20,000."""
MOST_UNKNOWN = 10_000
"""Fields with names that no model of ours has, such as those in the data of tools."""
STRUCTURE = (b",", b":", b"[", b"{")


def check_values(body: bytes) -> None:
    """Raises a 422 when there are too many values. Takes a few milliseconds for the largest body."""
    if len(body) <= MOST_VALUES or _count_structure(body) <= MOST_VALUES:
        return
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Each text is a value or the name of one, so there can be no more texts than values either.
    if plain.count(b'"') <= 2 * MOST_VALUES and _count_structure(b"".join(plain.split(b'"')[::2])) <= MOST_VALUES:
        return
    raise HTTPException(
        422, f"The body has more than {MOST_VALUES:,} values; send it in parts, or data of tools as text."
    )


def check_fields(body: bytes, parsed: Any) -> None:
    """Raises a 422 when there are too many unknown fields: each would be an error of its own."""
    if body.count(b":") <= MOST_UNKNOWN:
        return
    known, unknown, waiting = known_fields(), 0, [parsed]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            unknown += len(value.keys() - known)
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
        if unknown > MOST_UNKNOWN:
            raise HTTPException(422, f"The body has more than {MOST_UNKNOWN:,} unknown fields.")


@cache
def known_fields() -> frozenset[str]:
    """The names of the fields of all our models."""
    names, waiting = set[str](), [BaseModel]
    while waiting:
        for model in waiting.pop().__subclasses__():
            waiting.append(model)
            if model.__module__.startswith("reflexio."):
                names |= model.__pydantic_fields__.keys()
    return frozenset(names)


def _count_structure(text: bytes) -> int:
    return sum(map(text.count, STRUCTURE))
