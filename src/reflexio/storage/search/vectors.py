"""The nearest rows of one shelf (one org, one kind of row) by cosine, in process and in numpy.

The database is the truth and this a copy to search in: it is rebuilt at start and never asked what exists.
Rows are kept in half precision for exact scores and as sign bits for a first pass over many. A row is written
to a fresh slot and then made known, never changed in place, so that readers need no lock.
"""

import threading
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reflexio.errors import ProviderError

Ids = NDArray[np.int64]
Scores = NDArray[np.float32]

FIRST_CHUNK, LARGEST_CHUNK = 256, 65_536
# Below this many rows scoring every one costs no more than the first pass.
SCORED_OUTRIGHT = 4_000
# Rows rescored in the first pass, by rows asked for. Measured on real and on clustered embeddings: see
# tests/bench/vector_speed.py. Ten rows need some 500 for a recall of .99, 2,000 leave room.
LEAST_RESCORED, RESCORED_FOR_ONE = 2_000, 20
# Dead slots are dropped when they outnumber the living, and there are enough of them to matter.
WORTH_COMPACTING = 1_024


@dataclass(frozen=True, slots=True)
class Nearest:
    """Row ids and their cosine to the query, best first, equals by age."""

    ids: Ids
    scores: Scores

    def __len__(self) -> int:
        return len(self.ids)


class VectorIndex:
    """Unit vectors of one shelf. One writer and any number of readers may use it at once.

    >>> index = VectorIndex(2)
    >>> index.add([1, 2], ["ada", "bob"], [[1, 0], [0, 1]])
    >>> index.nearest([1, 0], 1).ids.tolist()
    [1]
    """

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self._shelf = _Shelf(dimensions)
        self._writing = threading.Lock()

    def __len__(self) -> int:
        return len(self._shelf.slots)

    def __contains__(self, row: int) -> bool:
        return row in self._shelf.slots

    def add(self, ids: Sequence[int] | Ids, users: Sequence[str], vectors: ArrayLike) -> None:
        """Add rows; an id that is known already is replaced. All of them or none."""
        rows = _checked(vectors, self.dimensions)
        if not len(ids) == len(users) == len(rows):
            raise ValueError(f"{len(ids)} ids, {len(users)} users and {len(rows)} vectors")
        with self._writing:
            self._shelf.append(np.asarray(ids, np.int64), users, rows)
            self._compact()

    def remove(self, ids: Collection[int]) -> None:
        """Forget rows; unknown ids are passed over."""
        with self._writing:
            self._shelf.forget(ids)
            self._compact()

    def nearest(
        self,
        query: ArrayLike,
        k: int,
        *,
        user: str | None = None,
        within: Collection[int] | Ids | None = None,
    ) -> Nearest:
        """The `k` nearest rows: of everyone, of one user, or of the ids named by `within`."""
        if k <= 0:
            return _NOTHING
        return next(self.batches(query, k, user=user, within=within), _NOTHING)

    def batches(
        self,
        query: ArrayLike,
        size: int,
        *,
        user: str | None = None,
        within: Collection[int] | Ids | None = None,
    ) -> Iterator[Nearest]:
        """The same rows in batches of `size`, then ever larger ones, until there are no more.

        For a caller that filters in the database: what the first batch computed is kept for the next.
        """
        target = _checked([np.asarray(query)], self.dimensions)[0].astype(np.float32)
        shelf = self._shelf
        chosen = shelf.chosen(user, within)
        if chosen is None and shelf.used > SCORED_OUTRIGHT:
            yield from _coarse_to_fine(shelf, target, size)
        else:
            slots = np.arange(shelf.used) if chosen is None else chosen
            yield from _growing(shelf.ranked(slots, shelf.score(slots, target)), size)

    def _compact(self) -> None:
        if (dead := self._shelf.used - len(self._shelf.slots)) > WORTH_COMPACTING and dead > len(self):
            self._shelf = self._shelf.without_the_dead()


@dataclass(slots=True)
class _Chunk:
    """A run of slots. `bits` is kept word by word, so that one word of all rows lies together."""

    start: int
    rows: NDArray[np.float16]
    bits: NDArray[np.uint64]
    ids: Ids
    alive: NDArray[np.bool_]

    @classmethod
    def empty(cls, start: int, size: int, dimensions: int) -> "_Chunk":
        return cls(
            start,
            np.empty((size, dimensions), np.float16),
            np.empty((-(-dimensions // 64), size), np.uint64),
            np.empty(size, np.int64),
            np.zeros(size, np.bool_),
        )

    @property
    def end(self) -> int:
        return self.start + len(self.ids)


@dataclass(slots=True)
class _Shelf:
    dimensions: int
    chunks: list[_Chunk] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    slots: dict[int, int] = field(default_factory=dict)
    of_user: dict[str, list[NDArray[np.int64]]] = field(default_factory=dict)
    used: int = 0

    def append(self, ids: Ids, users: Sequence[str], rows: NDArray[np.float16]) -> None:
        first, at = self.used, 0
        while at < len(ids):
            chunk = self._chunk_with_room(first + at)
            part = slice(at, min(len(ids), at + chunk.end - first - at))
            here = slice(first + at - chunk.start, first + part.stop - chunk.start)
            chunk.rows[here], chunk.ids[here] = rows[part], ids[part]
            chunk.bits[:, here] = _sign_bits(rows[part]).T
            at = part.stop
        self._make_known(ids, users, first)

    def _chunk_with_room(self, slot: int) -> _Chunk:
        if not self.chunks or slot >= self.chunks[-1].end:
            size = min(max(slot, FIRST_CHUNK), LARGEST_CHUNK)
            self.chunks.append(_Chunk.empty(slot, size, self.dimensions))
            self.starts.append(slot)
        return self.chunks[-1]

    def _make_known(self, ids: Ids, users: Sequence[str], first: int) -> None:
        # The order matters to readers: alive before counted, counted before named, and only then the old
        # version of a replaced row dies. In between a reader may see both and keeps one.
        fresh = np.arange(first, first + len(ids))
        for chunk, here, _ in self._by_chunk(fresh):
            chunk.alive[here] = True
        self.used = first + len(ids)
        known = ids.tolist()
        replaced = [self.slots[row] for row in known if row in self.slots]
        latest = dict(zip(known, fresh.tolist(), strict=True))
        if len(latest) < len(known):
            replaced += list(set(fresh.tolist()).difference(latest.values()))
        self.slots.update(latest)
        for user, slots in _grouped(users, first).items():
            # A new list, as a reader may be joining the old one.
            self.of_user[user] = [*self._joined(user), slots] if user in self.of_user else [slots]
        self._bury(replaced)

    def _joined(self, user: str) -> list[NDArray[np.int64]]:
        parts = self.of_user[user]
        return [np.concatenate(parts)] if len(parts) > 8 else parts

    def forget(self, ids: Collection[int]) -> None:
        self._bury([slot for row in ids if (slot := self.slots.pop(int(row), -1)) >= 0])

    def _bury(self, slots: Collection[int]) -> None:
        for chunk, here, _ in self._by_chunk(np.array(sorted(slots), np.int64)):
            chunk.alive[here] = False

    def chosen(self, user: str | None, within: Collection[int] | Ids | None) -> NDArray[np.int64] | None:
        """The slots to score, or None for all of them."""
        mine = None if user is None else np.concatenate(self.of_user.get(user, [_NO_SLOTS]))
        if within is None:
            return mine
        rows = within.tolist() if isinstance(within, np.ndarray) else within
        named = np.array([slot for row in rows if (slot := self.slots.get(int(row), -1)) >= 0], np.int64)
        return np.unique(named) if mine is None else np.intersect1d(named, mine)

    def score(self, slots: NDArray[np.int64], target: NDArray[np.float32]) -> Scores:
        scores = np.empty(len(slots), np.float32)
        for chunk, here, part in self._by_chunk(slots):
            # A long run of neighbours is read where it lies; converting in steps keeps the copy small.
            for low in range(0, len(here), 4_096):
                some = here[low : low + 4_096]
                scores[part][low : low + 4_096] = chunk.rows[some].astype(np.float32) @ target
        return scores

    def ranked(self, slots: NDArray[np.int64], scores: Scores) -> Nearest:
        """Best first; the dead are left out, and of two versions of a row the later stays."""
        ids, alive = np.empty(len(slots), np.int64), np.empty(len(slots), np.bool_)
        for chunk, here, part in self._by_chunk(slots):
            ids[part], alive[part] = chunk.ids[here], chunk.alive[here]
        ids, scores, slots = ids[alive], scores[alive], slots[alive]
        order = np.lexsort((-slots, ids, -scores))
        ids, scores = ids[order], scores[order]
        if len(np.unique(ids)) < len(ids):
            ids, scores = _first_of_each(ids, scores)
        return Nearest(ids, scores)

    def _by_chunk(self, slots: NDArray[np.int64]) -> Iterator[tuple[_Chunk, NDArray[np.int64], slice]]:
        """Ascending slots as (chunk, positions in it, which of the slots these are)."""
        edges = np.searchsorted(slots, self.starts)
        for chunk, low, high in zip(self.chunks, edges, [*edges[1:], len(slots)], strict=False):
            if low < high:
                yield chunk, slots[low:high] - chunk.start, slice(int(low), int(high))

    def distances(self, bits: NDArray[np.uint64]) -> NDArray[np.uint16]:
        """How many signs of each slot differ from those of the query; the dead are farthest."""
        used, words = self.used, len(bits)
        counts = np.empty(used, np.uint16)
        for chunk in self.chunks:
            if (size := min(chunk.end, used) - chunk.start) <= 0:
                break
            here = counts[chunk.start : chunk.start + size]
            np.bitwise_count(chunk.bits[0, :size] ^ bits[0], out=here, casting="unsafe")
            for word in range(1, words):
                here += np.bitwise_count(chunk.bits[word, :size] ^ bits[word])
            here[~chunk.alive[:size]] = 64 * words + 1
        return counts

    def without_the_dead(self) -> "_Shelf":
        fresh = _Shelf(self.dimensions)
        owner = {int(slot): user for user, parts in self.of_user.items() for part in parts for slot in part}
        living = np.array(sorted(self.slots.values()), np.int64)
        for chunk, here, part in self._by_chunk(living):
            users = [owner[slot] for slot in living[part].tolist()]
            fresh.append(chunk.ids[here], users, chunk.rows[here])
        return fresh


_NO_SLOTS: NDArray[np.int64] = np.empty(0, np.int64)
_NOTHING = Nearest(np.empty(0, np.int64), np.empty(0, np.float32))


def _coarse_to_fine(shelf: _Shelf, target: NDArray[np.float32], size: int) -> Iterator[Nearest]:
    """Rank by signs, rescore the front of that ranking exactly, and go on from there when asked for more."""
    distances = shelf.distances(_sign_bits(target[None, :])[0])
    farthest = int(64 * len(_sign_bits(target[None, :])[0]))
    so_far = np.bincount(distances, minlength=farthest + 2)[: farthest + 1].cumsum()
    reached, given = -1, 0
    pool = _NOTHING
    while given < so_far[-1]:
        depth = max(LEAST_RESCORED, RESCORED_FOR_ONE * (given + size))
        limit = min(int(np.searchsorted(so_far, depth)), farthest)
        if limit > reached:
            slots = np.flatnonzero(
                (distances > reached) & (distances <= limit) if reached >= 0 else distances <= limit
            )
            pool = _merged(pool, shelf.ranked(slots, shelf.score(slots, target)))
            reached = limit
        if not len(pool) and reached >= farthest:
            return
        yield Nearest(pool.ids[:size], pool.scores[:size])
        given += min(size, len(pool))
        pool = Nearest(pool.ids[size:], pool.scores[size:])
        size *= 4


def _growing(all_of_them: Nearest, size: int) -> Iterator[Nearest]:
    at = 0
    while at < len(all_of_them):
        yield Nearest(all_of_them.ids[at : at + size], all_of_them.scores[at : at + size])
        at, size = at + size, size * 4


def _merged(left: Nearest, right: Nearest) -> Nearest:
    if not len(left):
        return right
    ids, scores = np.concatenate((left.ids, right.ids)), np.concatenate((left.scores, right.scores))
    order = np.lexsort((ids, -scores))
    return Nearest(ids[order], scores[order])


def _first_of_each(ids: Ids, scores: Scores) -> tuple[Ids, Scores]:
    firsts = np.sort(np.unique(ids, return_index=True)[1])
    return ids[firsts], scores[firsts]


def _grouped(users: Sequence[str], first: int) -> dict[str, NDArray[np.int64]]:
    slots: dict[str, list[int]] = {}
    for slot, user in enumerate(users, first):
        slots.setdefault(user, []).append(slot)
    return {user: np.array(own, np.int64) for user, own in slots.items()}


def _sign_bits(rows: NDArray[np.float16] | NDArray[np.float32]) -> NDArray[np.uint64]:
    packed = np.packbits(rows > 0, axis=1)
    padded = np.zeros((len(rows), 8 * -(-rows.shape[1] // 64)), np.uint8)
    padded[:, : packed.shape[1]] = packed
    return padded.view(np.uint64)


def _checked(vectors: ArrayLike, dimensions: int) -> NDArray[np.float16]:
    """The vectors in half precision, or the error of whoever made them."""
    rows = np.asarray(vectors)
    if not rows.size:
        return np.empty((0, dimensions), np.float16)
    if rows.ndim != 2 or rows.shape[1] != dimensions:
        raise ProviderError(
            f"It gave vectors of shape {rows.shape!r} where {dimensions} numbers each were expected."
        )
    if rows.dtype != np.float16:
        with np.errstate(over="ignore", invalid="ignore"):
            rows = rows.astype(np.float16)
    if not np.isfinite(rows).all():
        raise ProviderError("It gave a vector with a number that is not finite.")
    return rows
