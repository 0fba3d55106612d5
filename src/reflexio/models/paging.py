"""Pages of long lists, newest first, with a cursor to the next page."""

import base64
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Generic, Self, TypeVar

from pydantic import AfterValidator, StringConstraints

from reflexio.models.wire import TimeRangeRequest

MOST = 10_000
"""The most rows in one page."""
MOST_BYTES = 8 * 2**20
"""The most bytes in one page, as JSON; a single row may be longer."""


@dataclass(frozen=True)
class Position:
    """A position in a list ordered by time and id, both descending: the last row already read."""

    at: int
    id: int

    def cursor(self) -> str:
        return base64.urlsafe_b64encode(f"{self.at}.{self.id}".encode()).decode().rstrip("=")

    @classmethod
    def read(cls, cursor: str) -> Self:
        with suppress(ValueError):
            at, row = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii").split(".")
            position = cls(int(at), int(row))
            if 0 <= position.at < 2**63 and 0 <= position.id < 2**63 and position.cursor() == cursor:
                return position
        raise ValueError("not a cursor of this server; start again without one")


@dataclass(frozen=True)
class Page:
    """How many rows and bytes, and after which position."""

    limit: int
    after: Position | None = None
    most_bytes: int = MOST_BYTES


T = TypeVar("T")


@dataclass(frozen=True)
class Listing(Generic[T]):
    """One page of rows, and the position after its last one when there are more."""

    rows: list[T]
    end: Position | None = None

    @property
    def cursor(self) -> str | None:
        return self.end.cursor() if self.end else None


def _known(cursor: str) -> str:
    Position.read(cursor)
    return cursor


Cursor = Annotated[str, StringConstraints(max_length=100), AfterValidator(_known)]


class PageRequest(TimeRangeRequest):
    """Asks for a page of rows in a time range."""

    cursor: Cursor | None = None


def page(limit: int, cursor: str | None) -> Page:
    return Page(min(limit, MOST), Position.read(cursor) if cursor else None)
