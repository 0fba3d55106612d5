"""In-process copies of the stored vectors: one index for each organisation, kind of row and model.

A copy reads on from where it stopped each time it is used, so it is never older than the transaction that asks. Only a
long backlog, as after a start, is read in steps; until then its answers say that they are partial. So do answers where
most rows have no vector yet, as after a change of the embedder or while it fails.
"""

import threading
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, bindparam, select

from reflexio.ports.storage import Matched
from reflexio.storage.compiled import CompiledQuery
from reflexio.storage.schema import vectors
from reflexio.storage.vectors.index import VectorIndex
from reflexio.storage.vectors.search import nearest_allowed

STEP = 20_000
"""Rows that one search reads before it searches, some 100 ms."""
NEW_VECTORS = CompiledQuery(
    select(vectors.c.seq, vectors.c.row_id, vectors.c.user_id, vectors.c.model, vectors.c.vector)
    .where(
        vectors.c.org_id == bindparam("org"), vectors.c.kind == bindparam("which"), vectors.c.seq > bindparam("seen")
    )
    .order_by(vectors.c.seq)
    .limit(STEP)
)


class CachedVectors:
    """The vectors of one organisation, kind of row and model."""

    def __init__(self, org_id: str, kind: str, model: str) -> None:
        self._org = org_id
        self._kind = kind
        self._model = model
        self._index: VectorIndex | None = None
        self._seen = 0
        self._reading = threading.Lock()

    def catch_up(self, connection: Connection) -> bool:
        """Reads what is new. False when more is left for the next time."""
        with self._reading:
            rows = NEW_VECTORS.rows(connection, {"org": self._org, "which": self._kind, "seen": self._seen})
            if rows:
                self._apply(rows)
                self._seen = rows[-1][0]
            return len(rows) < STEP

    def _apply(self, rows: Sequence[tuple[Any, ...]]) -> None:
        if self._index is not None:
            self._index.remove([row_id for _, row_id, _, _, vector in rows if vector is None])
        new = [
            (row_id, user_id, vector)
            for _, row_id, user_id, model, vector in rows
            if vector is not None and model == self._model
        ]
        if new:
            ids, users, halves = zip(*new, strict=True)
            dimensions = len(halves[0]) // 2
            index = self._index = self._index or VectorIndex(dimensions)
            index.add(ids, users, np.frombuffer(b"".join(halves), np.float16).reshape(len(new), dimensions))

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
        index = self._index
        if index is None or len(query) != index.dimensions:
            return Matched(complete=complete and not stored)
        return nearest_allowed(
            index, query, limit, also, passing, complete=complete, stored=stored, user=user, within=within
        )


class VectorCache:
    def __init__(self) -> None:
        self._cached: dict[tuple[str, str, str], CachedVectors] = {}

    def of(self, org_id: str, kind: str, model: str) -> CachedVectors:
        return self._cached.setdefault((org_id, kind, model), CachedVectors(org_id, kind, model))

    def stored(self, connection: Connection, model: str) -> list[CachedVectors]:
        """Those of which vectors are stored, of any model."""
        query = select(vectors.c.org_id, vectors.c.kind).distinct()
        return [self.of(org_id, kind, model) for org_id, kind in connection.execute(query)]
