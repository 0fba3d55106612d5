"""Search by vectors in PostgreSQL with pgvector. Scores are exact; what differs is which rows are scored.

Rows of one user, listed rows and small scopes are all scored. In a larger scope an index of sign bits names the rows
that are scored. No index of approximate neighbours is used for a filtered search: it would lose rows.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection

from reflexio.ports.storage import Matched
from reflexio.storage.compiled import driver_connection
from reflexio.storage.fulltext.tables import parse_ids
from reflexio.storage.vectors.index import (
    LEAST_RESCORED,
    NOTHING,
    RESCORED_FOR_ONE,
    SAMPLED_ROWS,
    SCORED_COMPLETELY,
    Nearest,
)
from reflexio.storage.vectors.search import nearest_allowed

_SCORED = "SELECT string_agg(row_id::text, ','), array_agg(score) FROM ({rows}) AS scored"
_ROWS = (
    "SELECT row_id, -(vector <#> %(query)s::halfvec) AS score FROM vectors"
    " WHERE org_id = %(org)s AND kind = %(kind)s AND model = %(model)s"
)
# Nothing of a caller is in these statements: values are bound.
_OF_ALL = _SCORED.format(rows=_ROWS)
_OF_USER = _SCORED.format(rows=_ROWS + " AND user_id = %(user)s")
_OF_LISTED = _SCORED.format(rows=_ROWS + " AND row_id = ANY(%(ids)s)")
_BY_BITS = (
    "WITH near AS MATERIALIZED (SELECT row_id FROM vectors WHERE org_id = %(org)s AND kind = %(kind)s"
    " AND model = %(model)s ORDER BY bits::bit({dimensions}) <~> binary_quantize(%(query)s::halfvec)::bit({dimensions})"
    " LIMIT %(most)s) "
)
_BEST_BY_BITS = _BY_BITS + _SCORED.format(rows=_ROWS + " AND row_id IN (SELECT row_id FROM near)")  # noqa: S608
_PENDING = (
    "SELECT count(*) FROM (SELECT FROM unembedded WHERE org_id = %(org)s AND kind = %(kind)s LIMIT %(most)s) AS p"
)
# Even in age: numbers of rows have nothing to do with what the rows say.
_SAMPLE = _SCORED.format(rows=_ROWS + " ORDER BY row_id %% 97, row_id LIMIT %(most)s")


class PgVectorSearch:
    """All vectors, as one transaction sees them."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def of(self, org_id: str, kind: str, model: str) -> "ScopeVectors":
        return ScopeVectors(self._connection, {"org": org_id, "kind": kind, "model": model})


class ScopeVectors:
    """The vectors of one organisation, kind of row and model."""

    def __init__(self, connection: Connection, scope: dict[str, Any]) -> None:
        self._connection = connection
        self._scope = scope

    def catch_up(self, connection: Connection) -> bool:
        """Nothing is copied, so nothing can be behind."""
        return True

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
        rows = ScoredRows(self._connection, self._scope, stored)
        return nearest_allowed(
            rows, query, limit, also, passing, complete=complete, stored=stored, user=user, within=within
        )


class ScoredRows:
    """The rows of a scope; `stored` is how many there are, with or without a vector."""

    def __init__(self, connection: Connection, scope: dict[str, Any], stored: int) -> None:
        self._connection = connection
        self._scope = scope
        self._stored = stored

    def __len__(self) -> int:
        """How many have a vector. Counts those that have none, which are few."""
        ((pending,),) = self._rows(_PENDING, most=self._stored + 1)
        return max(0, self._stored - int(pending))

    def batches(
        self, query: Sequence[float], size: int, *, user: str | None = None, within: Sequence[int] | None = None
    ) -> Iterator[Nearest]:
        if size <= 0:
            return
        if user is not None or within is not None or self._stored <= SCORED_COMPLETELY:
            yield from _in_batches(self._score_all(query, user, within), size)
            return
        sample = self._score(_SAMPLE, query, most=SAMPLED_ROWS)
        most, seen = max(LEAST_RESCORED, RESCORED_FOR_ONE * size), 0
        while True:
            best = self._score(_BEST_BY_BITS.replace("{dimensions}", str(len(query))), query, most=most)
            shown = best.part(seen, seen + size)
            if not len(shown):
                return
            yield Nearest(shown.ids, shown.scores, sample.mean, sample.spread, self._stored)
            seen, size = seen + size, size * 4
            if seen + size > most and len(best) >= most:
                most *= 4

    def nearest(self, query: Sequence[float], k: int, *, within: Collection[int] | None = None) -> Nearest:
        if within is None:
            return next(self.batches(query, k), NOTHING)
        return self._score_all(query, None, within).part(0, k)

    def _score_all(self, query: Sequence[float], user: str | None, within: Collection[int] | None) -> Nearest:
        if within is not None:
            return self._score(_OF_LISTED, query, ids=[int(row_id) for row_id in within])
        return self._score(_OF_ALL, query) if user is None else self._score(_OF_USER, query, user=user)

    def _score(self, statement: str, query: Sequence[float], **values: Any) -> Nearest:
        ((ids, scores),) = self._rows(statement, query=as_text(query), **values)
        return Nearest.ranked(parse_ids(ids), np.asarray(scores or (), np.float32))

    def _rows(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = (
            driver_connection(self._connection).execute(statement, {**self._scope, **values}).fetchall()
        )
        return rows


def as_text(numbers: Sequence[float]) -> str:
    """A vector as pgvector reads it."""
    return f"[{','.join(map(repr, map(float, numbers)))}]"


def _in_batches(ranked: Nearest, size: int) -> Iterator[Nearest]:
    start = 0
    while start < len(ranked):
        yield ranked.part(start, start + size)
        start, size = start + size, size * 4
