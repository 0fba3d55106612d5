"""Where the chunks of a store in memory lie.

A chunk takes a fresh slot and keeps it: to replace or to delete only buries the old one, so a search in another
thread never sees a row change.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflexio.agents.stores import Chunk, SearchResult
from reflexio.agents.vectors.columns import Columns, Mask
from reflexio.agents.vectors.diversity import diverse
from reflexio.agents.vectors.filters import Condition

FIRST_ROOM = 1_024
# Of fewer chosen rows than one in so many, only those are multiplied.
SPARSE = 64
WORTH_COMPACTING = 1_024

Vectors = NDArray[np.float32]
Slots = NDArray[np.int64]


class Rows:
    """Slots of chunks and unit vectors. One thread writes; `nearest` runs in any, on what was there before."""

    def __init__(self, dimensions: int) -> None:
        # A dimension a row: numpy's product reads this a third faster than a chunk a row.
        self.vectors: Vectors = np.empty((dimensions, FIRST_ROOM), np.float32)
        self.alive: Mask = np.zeros(FIRST_ROOM, np.bool_)
        self.ids: list[str] = []
        self.contents: list[str] = []
        self.metadata: list[dict[str, Any]] = []
        self.slots: dict[str, int] = {}
        self.columns = Columns(self.metadata)

    def append(
        self, ids: Sequence[str], contents: Sequence[str], metadata: Sequence[dict[str, Any]], vectors: Vectors
    ) -> None:
        first, used = len(self.ids), len(self.ids) + len(ids)
        self._make_room(used)
        self.vectors[:, first:used] = vectors.T
        self.ids += ids
        self.contents += contents
        self.metadata += metadata
        for slot, each in enumerate(ids, first):
            self.bury(each)
            self.slots[each] = slot
            self.alive[slot] = True

    def _make_room(self, used: int) -> None:
        room = len(self.alive)
        if used <= room:
            return
        more = max(used, 2 * room) - room
        self.vectors = np.concatenate((self.vectors, np.empty((len(self.vectors), more), np.float32)), axis=1)
        self.alive = np.concatenate((self.alive, np.zeros(more, np.bool_)))

    def bury(self, id: str) -> None:  # noqa: A002  its name everywhere
        if (slot := self.slots.pop(id, None)) is not None:
            self.alive[slot] = False

    def wanted(self, asked: Condition) -> Mask:
        """The living that answer, as they are now."""
        return self.alive[: len(self.ids)] & self.columns.mask(asked)

    def chunk(self, slot: int) -> Chunk:
        return Chunk(self.contents[slot], dict(self.metadata[slot]))

    def result(self, slot: int, score: float) -> SearchResult:
        return SearchResult(self.chunk(slot), score, self.ids[slot])

    def vector(self, slot: int) -> Vectors:
        return self.vectors[:, slot].copy()

    def compacted(self) -> "Rows":
        """These rows without the buried ones, if those have become many."""
        if len(self.ids) - len(self.slots) < max(WORTH_COMPACTING, len(self.slots)):
            return self
        kept = sorted(self.slots.values())
        fresh = Rows(len(self.vectors))
        fresh.append(
            [self.ids[slot] for slot in kept],
            [self.contents[slot] for slot in kept],
            [self.metadata[slot] for slot in kept],
            self.vectors[:, kept].T,
        )
        return fresh


def nearest(rows: Vectors, wanted: Mask, query: Vectors, k: int) -> tuple[Slots, Vectors]:
    """Slots of the `k` nearest among the wanted and their cosines, best first, equals by age."""
    count = int(np.count_nonzero(wanted))
    if count * SPARSE < len(wanted):
        slots = np.flatnonzero(wanted)
        scores = query @ rows[:, slots]
    else:
        scores = query @ rows
        if count < len(wanted):
            scores[~wanted] = -np.inf
        # Those that tie with the last are looked at too, or their order would be numpy's.
        least = np.partition(scores, len(scores) - k)[len(scores) - k] if count > k else np.float32(-2)
        slots = np.flatnonzero(scores >= least)
        scores = scores[slots]
    order = np.lexsort((slots, -scores))[:k]
    return slots[order], np.clip(scores[order], -1.0, 1.0)


def varied(rows: Vectors, slots: Slots, scores: Vectors, k: int, diversity: float) -> tuple[Slots, Vectors]:
    chosen = diverse(scores, rows[:, slots].T, k, diversity)
    return slots[chosen], scores[chosen]
