"""The in-process copies of the vectors: one shelf for each organisation and kind of row.

A shelf reads on from where it stopped each time it is used, so it is never older than the transaction that
asks. Only a long backlog, as after a start, is read in steps; until then its answers say that they are partial.
So do answers where most rows have no vector yet, as after a change of the embedder or while it fails.
"""

import threading
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, bindparam, select

from reflexio.ports.storage import Matched
from reflexio.storage.hot import Look
from reflexio.storage.schema import vectors

if TYPE_CHECKING:
    from reflexio.storage.search.vectors import VectorIndex

STEP = 20_000
"""Rows that one search reads in passing, some 100 ms."""
MOST = 0.5
"""Below this share of rows with a vector, an answer by vectors is partial. One row more a moment ago is no matter."""


NEW = Look(
    select(vectors.c.seq, vectors.c.row_id, vectors.c.user_id, vectors.c.model, vectors.c.vector)
    .where(
        vectors.c.org_id == bindparam("org"), vectors.c.kind == bindparam("which"), vectors.c.seq > bindparam("seen")
    )
    .order_by(vectors.c.seq)
    .limit(STEP)
)


class Shelf:
    def __init__(self, org_id: str, kind: str, model: str) -> None:
        self._of = (org_id, kind, model)
        self._index: VectorIndex | None = None
        self._seen = 0
        self._reading = threading.Lock()

    def catch_up(self, connection: Connection) -> bool:
        """Reads what is new. False when more is left for the next time."""
        with self._reading:
            org_id, kind, model = self._of
            rows = NEW.rows(connection, {"org": org_id, "which": kind, "seen": self._seen})
            if rows:
                self._take(rows, model)
                self._seen = rows[-1][0]
            return len(rows) < STEP

    def _take(self, rows: Sequence[Any], model: str) -> None:
        import numpy as np

        from reflexio.storage.search.vectors import VectorIndex

        if self._index is not None:
            self._index.remove([row_id for _, row_id, _, _, vector in rows if vector is None])
        made = [
            (row_id, user_id, vector) for _, row_id, user_id, by, vector in rows if vector is not None and by == model
        ]
        if made:
            ids, users, halves = zip(*made, strict=True)
            dimensions = len(halves[0]) // 2
            self._index = self._index or VectorIndex(dimensions)
            self._index.add(ids, users, np.frombuffer(b"".join(halves), np.float16).reshape(len(made), dimensions))

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
        """The nearest rows that pass, asking about ever more of them until there are enough; then `also`.

        `stored` is how many rows there are, with or without a vector.
        """
        index = self._index
        if index is None or len(query) != index.dimensions:
            return Matched(complete=complete and not stored)
        found: dict[int, float] = {}
        mean = spread = 0.0
        searched = len(index) if user is None and within is None else 0
        batches = index.batches(query, limit, user=user, within=within)
        for batch in batches:
            mean, spread = (mean, spread) if found else (batch.mean, batch.spread)
            searched = max(searched, batch.scored)
            passed = passing(batch.ids.tolist())
            found |= {row: score for row, score in batch.pairs if row in passed}
            if len(found) >= limit:
                break
        best = dict(list(found.items())[:limit])
        missing = set(also).difference(best)
        if missing and (user is not None or within is not None):
            # Of few rows all are scored already.
            scored = ((row, score) for batch in batches for row, score in batch.pairs)
            best |= {row: score for row, score in (*found.items(), *scored) if row in missing}
            missing.difference_update(best)
        if missing:
            best |= dict(index.nearest(query, len(missing), within=missing).pairs)
        complete = complete and searched >= MOST * stored
        return Matched(tuple(best), tuple(best.values()), mean=mean, spread=spread, complete=complete)


class Shelves:
    def __init__(self) -> None:
        self._shelves: dict[tuple[str, str, str], Shelf] = {}

    def of(self, org_id: str, kind: str, model: str) -> Shelf:
        return self._shelves.setdefault((org_id, kind, model), Shelf(org_id, kind, model))

    def stored(self, connection: Connection, model: str) -> list[Shelf]:
        """Those of which there are vectors, of any model."""
        query = select(vectors.c.org_id, vectors.c.kind).distinct()
        return [self.of(org_id, kind, model) for org_id, kind in connection.execute(query)]
