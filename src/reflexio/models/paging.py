"""Long lists are read in pages: newest first, each page naming where the next one begins."""

import base64
import binascii
from dataclasses import dataclass
from typing import Annotated, Generic, Self, TypeVar

from pydantic import AfterValidator, StringConstraints

MOST = 10_000
"""Rows in one page at most."""


@dataclass(frozen=True)
class Position:
    """A place in a list ordered by time and then id, both descending: the last row already seen."""

    at: int
    id: int

    def cursor(self) -> str:
        return base64.urlsafe_b64encode(f"{self.at}.{self.id}".encode()).decode().rstrip("=")

    @classmethod
    def read(cls, cursor: str) -> Self:
        try:
            at, row = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii").split(".")
            position = cls(int(at), int(row))
        except (binascii.Error, ValueError):
            raise ValueError("not a cursor of this server; start again without one") from None
        if not (0 <= position.at < 2**63 and 0 <= position.id < 2**63) or position.cursor() != cursor:
            raise ValueError("not a cursor of this server; start again without one")
        return position


@dataclass(frozen=True)
class Page:
    """How many rows, and after which one."""

    limit: int
    after: Position | None = None


T = TypeVar("T")


@dataclass(frozen=True)
class Listing(Generic[T]):
    """One page of rows, and the place after its last one when there are more."""

    rows: list[T]
    end: Position | None = None

    @property
    def cursor(self) -> str | None:
        return self.end.cursor() if self.end else None


def _known(cursor: str) -> str:
    Position.read(cursor)
    return cursor


Cursor = Annotated[str, StringConstraints(max_length=100), AfterValidator(_known)]


def page(limit: int, cursor: str | None) -> Page:
    return Page(min(limit, MOST), Position.read(cursor) if cursor else None)
