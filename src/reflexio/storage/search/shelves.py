"""The in-process copies of the vectors: one shelf for each organisation and kind of row.

A shelf reads on from where it stopped each time it is used, so it is never older than the transaction that
asks. Only a long backlog, as after a start, is read in steps; until then its answers say that they are partial.
"""

import threading
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, bindparam, select

from reflexio.ports.storage import Matched
from reflexio.storage.schema import vectors

if TYPE_CHECKING:
    from reflexio.storage.search.vectors import VectorIndex

STEP = 20_000
"""Rows that one search reads in passing, some 100 ms."""


NEW = (
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
            rows = connection.execute(NEW, {"org": org_id, "which": kind, "seen": self._seen}).all()
            if rows:
                self._take(rows, model)
                self._seen = rows[-1].seq
            return len(rows) < STEP

    def _take(self, rows: Sequence[Any], model: str) -> None:
        import numpy as np

        from reflexio.storage.search.vectors import VectorIndex

        made = [row for row in rows if row.vector is not None and row.model == model]
        if self._index is not None:
            self._index.remove([row.row_id for row in rows if row.vector is None])
        if made:
            dimensions = len(made[0].vector) // 2
            self._index = self._index or VectorIndex(dimensions)
            numbers = np.frombuffer(b"".join(row.vector for row in made), np.float16).reshape(len(made), dimensions)
            self._index.add([row.row_id for row in made], [row.user_id for row in made], numbers)

    def nearest(
        self,
        query: Sequence[float],
        limit: int,
        also: Sequence[int],
        passing: Callable[[list[int]], Collection[int]],
        *,
        complete: bool,
        user: str | None,
        within: Sequence[int] | None,
    ) -> Matched:
        """The nearest rows that pass, asking about ever more of them until there are enough; then `also`."""
        index = self._index
        if index is None or len(query) != index.dimensions:
            return Matched(complete=complete)
        found: dict[int, float] = {}
        mean = spread = 0.0
        for batch in index.batches(query, limit, user=user, within=within):
            mean, spread = (mean, spread) if found else (batch.mean, batch.spread)
            asked = batch.ids.tolist()
            passed = passing(asked)
            found |= {row: score for row, score in zip(asked, batch.scores.tolist(), strict=True) if row in passed}
            if len(found) >= limit:
                break
        best = dict(list(found.items())[:limit])
        if missing := [row for row in also if row not in best]:
            named = index.nearest(query, len(missing), within=missing)
            best |= dict(zip(named.ids.tolist(), named.scores.tolist(), strict=True))
        return Matched(tuple(best), tuple(best.values()), mean=mean, spread=spread, complete=complete)


class Shelves:
    def __init__(self) -> None:
        self._shelves: dict[tuple[str, str, str], Shelf] = {}

    def of(self, org_id: str, kind: str, model: str) -> Shelf:
        return self._shelves.setdefault((org_id, kind, model), Shelf(org_id, kind, model))

    def warm(self, connection: Connection, model: str) -> bool:
        """Reads some of what no shelf has yet. False when more is left."""
        query = select(vectors.c.org_id, vectors.c.kind).distinct()
        shelves = [self.of(org_id, kind, model) for org_id, kind in connection.execute(query)]
        return not [shelf for shelf in shelves if not shelf.catch_up(connection)]
