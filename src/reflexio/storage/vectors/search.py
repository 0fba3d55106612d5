"""What a search by vectors is asked, and how it goes on until enough rows pass the caller's filters."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Protocol

from sqlalchemy import Connection

from reflexio.ports.storage import Matched
from reflexio.storage.vectors.index import Nearest

LEAST_EMBEDDED = 0.5
"""Below this share of rows with a vector, an answer by vectors is partial. A few rows without one do not matter."""


class SearchedVectors(Protocol):
    """The vectors of one organisation, kind of row and model."""

    def catch_up(self, connection: Connection) -> bool:
        """Reads what is new. False when more is left for the next time."""

    def nearest(
        self,
        query: Sequence[float],
        limit: int,
        also: Sequence[int],
        passing: Callable[[list[int]], Collection[int]],
        *,
        complete: bool,
        stored: int,
        user: str | None,
        within: Sequence[int] | None,
    ) -> Matched:
        """The nearest rows that pass, filtering ever more of them until there are enough; then the rows of `also`.

        `stored` is how many rows there are, with or without a vector.
        """


class VectorSearch(Protocol):
    """All vectors, as one transaction sees them."""

    def of(self, org_id: str, kind: str, model: str) -> SearchedVectors: ...


class RankedRows(Protocol):
    """Rows to search by their vectors."""

    def __len__(self) -> int: ...

    def batches(
        self, query: Sequence[float], size: int, *, user: str | None = None, within: Sequence[int] | None = None
    ) -> Iterator[Nearest]:
        """The nearest rows in ever larger batches until there are no more."""

    def nearest(self, query: Sequence[float], k: int, *, within: Collection[int] | None = None) -> Nearest: ...


def nearest_allowed(
    index: RankedRows,
    query: Sequence[float],
    limit: int,
    also: Iterable[int],
    passing: Callable[[list[int]], Collection[int]],
    *,
    complete: bool,
    stored: int,
    user: str | None,
    within: Sequence[int] | None,
) -> Matched:
    """The answer to `SearchedVectors.nearest`."""
    hits: dict[int, float] = {}
    mean = spread = 0.0
    searched = len(index) if user is None and within is None else 0
    batches = index.batches(query, limit, user=user, within=within)
    for batch in batches:
        mean, spread = (mean, spread) if hits else (batch.mean, batch.spread)
        searched = max(searched, batch.scored)
        passed = passing(batch.ids.tolist())
        hits |= {row_id: score for row_id, score in batch.pairs if row_id in passed}
        if len(hits) >= limit:
            break
    best = dict(list(hits.items())[:limit])
    missing = set(also).difference(best)
    if missing and (user is not None or within is not None):
        # Of few rows all are scored already.
        scored = ((row_id, score) for batch in batches for row_id, score in batch.pairs)
        best |= {row_id: score for row_id, score in (*hits.items(), *scored) if row_id in missing}
        missing.difference_update(best)
    if missing:
        best |= dict(index.nearest(query, len(missing), within=missing).pairs)
    complete = complete and searched >= LEAST_EMBEDDED * stored
    return Matched(tuple(best), tuple(best.values()), mean=mean, spread=spread, complete=complete)
