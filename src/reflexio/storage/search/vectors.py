"""The nearest rows of one shelf (one org, one kind of row) by cosine, in process and in numpy.

The database is the truth and this a copy to search in: it is rebuilt at start and never asked what exists.
Rows are kept in half precision for exact scores and as sign bits for a first pass over many. A row is written
to a fresh slot and then made known, never changed in place, so that readers do not wait for writers.
"""

import threading
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reflexio.errors import ProviderError

Ids = NDArray[np.int64]
Scores = NDArray[np.float32]
Slots = NDArray[np.int64]
Within = Collection[int] | Ids

FIRST_CHUNK, LARGEST_CHUNK = 256, 65_536
# Below this many rows scoring every one costs no more than the first pass.
SCORED_OUTRIGHT = 4_000
# Rows rescored exactly, by rows asked for. Recall of ten among 112,000 real embeddings, copies and blends:
# .990 at 200 rows, .997 at 500, .998 at 1,000, .999 at 2,000; a thousand cost about a millisecond.
LEAST_RESCORED, RESCORED_FOR_ONE = 1_000, 20
# Rows by which the mean and the spread among many are told.
SAMPLED = 500
# Dead slots are dropped when they outnumber the living, and there are enough of them to matter.
WORTH_COMPACTING = 1_024


@dataclass(frozen=True, slots=True)
class Nearest:
    """Row ids and their cosine to the query, best first, equals by age.

    `mean` and `spread` are those of the cosines of all rows searched; among many, of an even sample.
    """

    ids: Ids
    scores: Scores
    mean: float = 0.0
    spread: float = 0.0

    def part(self, low: int, high: int | None = None) -> "Nearest":
        return replace(self, ids=self.ids[low:high], scores=self.scores[low:high])

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
        self, query: ArrayLike, k: int, *, user: str | None = None, within: Within | None = None
    ) -> Nearest:
        """The `k` nearest rows: of everyone, of one user, or of the ids named by `within`."""
        return _NOTHING if k <= 0 else next(self.batches(query, k, user=user, within=within), _NOTHING)

    def batches(
        self, query: ArrayLike, size: int, *, user: str | None = None, within: Within | None = None
    ) -> Iterator[Nearest]:
        """The same rows in batches of `size`, then ever larger ones, until there are no more.

        For a caller that filters in the database: what the first batch computed is kept for the next. Later
        batches see the rows as they were at the first.
        """
        target = _checked([np.asarray(query)], self.dimensions)[0].astype(np.float32)
        view, chosen = self._shelf.choose(user, within)
        if chosen is None and view.used > SCORED_OUTRIGHT:
            yield from _coarse_to_fine(view, target, size)
        else:
            slots = np.arange(view.used) if chosen is None else chosen
            yield from _growing(view.nearest(slots, target), size)

    def _compact(self) -> None:
        if (dead := self._shelf.used - len(self._shelf.slots)) > WORTH_COMPACTING and dead > len(self):
            self._shelf = self._shelf.without_the_dead()


@dataclass(slots=True)
class _Chunk:
    """A run of slots. `bits` is kept word by word, so that one word of all rows lies together.

    Slots that were handed to readers never change, except that `alive` is exchanged for another array.
    """

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
            np.ones(size, np.bool_),
        )

    @property
    def end(self) -> int:
        return self.start + len(self.ids)


@dataclass(frozen=True, slots=True)
class _View:
    """The rows as they were at one moment, whatever is written meanwhile."""

    chunks: tuple[_Chunk, ...]
    alive: tuple[NDArray[np.bool_], ...]
    used: int

    def nearest(self, slots: Slots, target: NDArray[np.float32]) -> Nearest:
        """The living among ascending slots, best first."""
        ids, scores = [_NOTHING.ids], [_NOTHING.scores]
        for chunk, alive, (low, high) in zip(self.chunks, self.alive, self._edges(slots), strict=True):
            here = slots[low:high] - chunk.start
            here = here[alive[here]]
            ids.append(chunk.ids[here])
            # Converting a few thousand at a time keeps the copy in the processor's cache.
            for at in range(0, len(here), 4_096):
                scores.append(chunk.rows[here[at : at + 4_096]].astype(np.float32) @ target)
        return _ranked(np.concatenate(ids), np.concatenate(scores))

    def _edges(self, slots: Slots) -> list[tuple[int, int]]:
        edges = np.searchsorted(slots, [*(chunk.start for chunk in self.chunks), self.used]).tolist()
        return list(pairwise(edges))

    def distances(self, bits: NDArray[np.uint64]) -> NDArray[np.uint16]:
        """How many signs of each slot differ from those of the query; the dead are farthest."""
        counts = np.empty(self.used, np.uint16)
        for chunk, alive in zip(self.chunks, self.alive, strict=True):
            here = counts[chunk.start : chunk.end]
            size = len(here)
            here[:] = np.bitwise_count(chunk.bits[0, :size] ^ bits[0])
            for word in range(1, len(bits)):
                here += np.bitwise_count(chunk.bits[word, :size] ^ bits[word])
            here[~alive[:size]] = 64 * len(bits) + 1
        return counts


@dataclass(slots=True)
class _Shelf:
    """Where rows are and whose. Written by one at a time; `publishing` is held for moments only."""

    dimensions: int
    chunks: list[_Chunk] = field(default_factory=list)
    slots: dict[int, int] = field(default_factory=dict)
    of_user: dict[str, list[Slots]] = field(default_factory=dict)
    used: int = 0
    publishing: threading.Lock = field(default_factory=threading.Lock)

    def choose(self, user: str | None, within: Within | None) -> tuple[_View, Slots | None]:
        """The rows as they are now and which of them to score, in ascending order; None for all."""
        with self.publishing:
            view = _View(tuple(self.chunks), tuple(chunk.alive for chunk in self.chunks), self.used)
            mine = self.of_user.get(user, [_NO_SLOTS]) if user is not None else None
            named = None if within is None else [self.slots.get(int(row), -1) for row in within]
        owned = None if mine is None else np.concatenate(mine)
        if named is None:
            return view, owned
        known = np.unique(np.array(named, np.int64))
        known = known[known >= 0]
        return view, known if owned is None else np.intersect1d(known, owned)

    def append(self, ids: Ids, users: Sequence[str], rows: NDArray[np.float16]) -> None:
        first, at, chunks = self.used, 0, list(self.chunks)
        while at < len(ids):
            chunk = self._with_room(chunks, first + at)
            stop = min(len(ids), chunk.end - first)
            here = slice(first + at - chunk.start, first + stop - chunk.start)
            chunk.rows[here], chunk.ids[here] = rows[at:stop], ids[at:stop]
            chunk.bits[:, here] = _sign_bits(rows[at:stop]).T
            at = stop
        places = dict(zip(ids.tolist(), range(first, first + len(ids)), strict=True))
        repeated = set(range(first, first + len(ids))).difference(places.values())
        owned = _grouped(users, first)
        with self.publishing:
            replaced = [self.slots[row] for row in places if row in self.slots]
            self.chunks, self.used = chunks, first + len(ids)
            self.slots.update(places)
            for user, slots in owned.items():
                self.of_user[user] = [*_joined(self.of_user.get(user, [])), slots]
            self._bury([*replaced, *repeated])

    def _with_room(self, chunks: list[_Chunk], slot: int) -> _Chunk:
        if not chunks or slot >= chunks[-1].end:
            size = min(max(slot, FIRST_CHUNK), LARGEST_CHUNK)
            chunks.append(_Chunk.empty(slot, size, self.dimensions))
        return chunks[-1]

    def forget(self, ids: Collection[int]) -> None:
        with self.publishing:
            self._bury([slot for row in ids if (slot := self.slots.pop(int(row), -1)) >= 0])

    def _bury(self, dead: Collection[int]) -> None:
        slots = np.array(sorted(dead), np.int64)
        for chunk in self.chunks:
            low, high = np.searchsorted(slots, [chunk.start, chunk.end])
            if low < high:
                # Another array, because readers hold the old one.
                alive = chunk.alive.copy()
                alive[slots[low:high] - chunk.start] = False
                chunk.alive = alive

    def without_the_dead(self) -> "_Shelf":
        fresh = _Shelf(self.dimensions)
        owner = {
            slot: user for user, parts in self.of_user.items() for part in parts for slot in part.tolist()
        }
        for chunk in self.chunks:
            here = np.flatnonzero(chunk.alive[: self.used - chunk.start])
            fresh.append(
                chunk.ids[here], [owner[slot] for slot in (here + chunk.start).tolist()], chunk.rows[here]
            )
        return fresh


_NO_SLOTS: Slots = np.empty(0, np.int64)
_NOTHING = Nearest(np.empty(0, np.int64), np.empty(0, np.float32))


def _coarse_to_fine(view: _View, target: NDArray[np.float32], size: int) -> Iterator[Nearest]:
    """Rank by signs, rescore the front of that ranking exactly, and go on from there when asked for more."""
    bits = _sign_bits(target[None, :])[0]
    distances = view.distances(bits)
    farthest = 64 * len(bits)
    within = np.bincount(distances, minlength=farthest + 2)[: farthest + 1].cumsum()
    sample = view.nearest(np.arange(0, view.used, max(1, view.used // SAMPLED)), target)
    reached, given, pool = -1, 0, _NOTHING
    while given < within[-1]:
        limit = min(
            int(np.searchsorted(within, max(LEAST_RESCORED, RESCORED_FOR_ONE * (given + size)))), farthest
        )
        if limit > reached:
            slots = np.flatnonzero(
                (distances <= limit) & (distances > reached) if given else distances <= limit
            )
            fresh = view.nearest(slots, target)
            pool = _ranked(np.concatenate((pool.ids, fresh.ids)), np.concatenate((pool.scores, fresh.scores)))
            reached = limit
        yield replace(pool.part(0, size), mean=sample.mean, spread=sample.spread)
        given += min(size, len(pool))
        pool = pool.part(size)
        size *= 4


def _growing(all_of_them: Nearest, size: int) -> Iterator[Nearest]:
    at = 0
    while at < len(all_of_them):
        yield all_of_them.part(at, at + size)
        at, size = at + size, size * 4


def _ranked(ids: Ids, scores: Scores) -> Nearest:
    order = np.lexsort((ids, -scores))
    spread = float(scores.std()) if len(scores) else 0.0
    return Nearest(ids[order], scores[order], float(scores.mean()) if len(scores) else 0.0, spread)


def _joined(parts: list[Slots]) -> list[Slots]:
    return [np.concatenate(parts)] if len(parts) > 8 else parts


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
