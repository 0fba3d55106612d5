"""Pages of search hits: as many rows as an answer may hold, read a few at a time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from reflexio.models.interaction import Interaction
from reflexio.models.learning import Learning
from reflexio.models.paging import MOST_BYTES
from reflexio.models.search import HitPosition
from reflexio.retrieval.fusion import Hit

ROWS_AT_ONCE = 50
"""Rows that are read before their bytes are counted: no more than so many beyond the page are held."""
BYTES_OF_NAMES = 1_200
"""The names of a row's fields in JSON, and the explanation of its rank, at most."""

ReadRows = Callable[[Sequence[int]], Mapping[int, Any]]


@dataclass
class HitPage:
    """One page of hits of one kind or several, one after the other, from a position among all of them."""

    start: int = 0
    most_bytes: int = MOST_BYTES
    next_start: int | None = None
    """Where the next page starts, when the rows do not fit in this one."""
    _passed: int = 0
    _taken: int = 0
    _bytes: int = 0

    @property
    def next_cursor(self) -> str | None:
        return None if self.next_start is None else HitPosition(self.next_start).cursor()

    def take(self, hits: Sequence[Hit], read_rows: ReadRows) -> tuple[tuple[Any, ...], tuple[Hit, ...]]:
        """The rows of the next kind that belong to this page, with their hits. Rows deleted meanwhile are left out."""
        before, skipped = self._passed, max(0, self.start - self._passed)
        self._passed += len(hits)
        rows: list[Any] = []
        taken: list[Hit] = []
        if self.next_start is not None or skipped >= len(hits):
            return (), ()
        for place, hit, row in each_row(hits, skipped, read_rows):
            self._bytes += row_bytes(row)
            if self._taken and self._bytes > self.most_bytes:
                self.next_start = before + place
                break
            self._taken += 1
            rows.append(row)
            taken.append(hit)
        return tuple(rows), tuple(taken)


def each_row(hits: Sequence[Hit], start: int, read_rows: ReadRows) -> Iterator[tuple[int, Hit, Any]]:
    """Each hit from the one at `start`, with its place and row, read a few at a time."""
    for first in range(start, len(hits), ROWS_AT_ONCE):
        some = hits[first : first + ROWS_AT_ONCE]
        rows = read_rows([hit.id for hit in some])
        for place, hit in enumerate(some, first):
            if hit.id in rows:
                yield place, hit, rows[hit.id]


def row_bytes(row: Learning | Interaction) -> int:
    """How long a row is in an answer."""
    text = row.model_dump_json().encode() if isinstance(row, Interaction) else orjson.dumps(row, default=str)
    return BYTES_OF_NAMES + len(text)
