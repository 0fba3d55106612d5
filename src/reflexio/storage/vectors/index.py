"""The nearest rows by cosine, in process and in numpy.

The database is the truth and this a copy to search in. Half precision gives exact scores. Few rows are scored
completely; among many, a pass over sign bits names those that are.
A row is written to a new slot and then published, never changed in place, so that readers do not wait for the writer.
Slots lie in segments that never move, so that growing copies nothing.
"""

import threading
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reflexio.errors import ProviderError

Ids = NDArray[np.int64]
Slots = NDArray[np.int64]
Scores = NDArray[np.float32]
Within = Collection[int] | Ids

FIRST_SEGMENT, LARGEST_SEGMENT = 256, 65_536
SCORED_AT_ONCE = 512  # rows that stay in the processor's cache
# Below this many rows scoring all of them costs no more than the first pass.
SCORED_COMPLETELY = 4_000
# Rows that are rescored exactly, by rows asked for. Recall of ten among 112,000 real embeddings, copies and blends:
# .990 at 200 rows, .997 at 500, .998 at 1,000, .999 at 2,000; a thousand cost about a millisecond.
LEAST_RESCORED, RESCORED_FOR_ONE = 1_000, 20
# Rows that the mean and the spread among many are computed from.
SAMPLED_ROWS = 500
# Dead slots are dropped when there are more of them than living ones, and enough to matter.
WORTH_COMPACTING = 1_024
_NOT_FINITE = np.int16(0x7C00)
_SIGN_AND_NUMBER = np.uint32(0x8FFFE000).view(np.int32)
_EXPONENT_SHIFT = np.float32(2.0**112)
_NO_SLOTS: Slots = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Nearest:
    """Row ids and their cosine to the query, best first, equals by age.

    `mean` and `spread` are those of the cosines of all rows searched; among many, of an even sample. `scored` is how
    many they are.
    """

    ids: Ids
    scores: Scores
    mean: float = 0.0
    spread: float = 0.0
    scored: int = 0

    @classmethod
    def ranked(cls, ids: Ids, scores: Scores) -> "Nearest":
        if not len(ids):
            return cls(ids, scores)
        order = np.lexsort((ids, -scores))
        return cls(ids[order], scores[order], float(scores.mean()), float(scores.std()), len(ids))

    def part(self, low: int, high: int | None = None) -> "Nearest":
        return replace(self, ids=self.ids[low:high], scores=self.scores[low:high])

    @property
    def pairs(self) -> "zip[tuple[int, float]]":
        return zip(self.ids.tolist(), self.scores.tolist(), strict=True)

    def __len__(self) -> int:
        return len(self.ids)


NOTHING = Nearest(np.empty(0, np.int64), np.empty(0, np.float32))


class VectorIndex:
    """Unit vectors of rows and their users. One writer and any number of readers may use it at the same time.

    >>> index = VectorIndex(2)
    >>> index.add([1, 2], ["ada", "bob"], [[1, 0], [0, 1]])
    >>> index.nearest([1, 0], 1).ids.tolist()
    [1]
    """

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self._segments = VectorSegments(dimensions)
        self._writing = threading.Lock()

    def __len__(self) -> int:
        return len(self._segments.slots)

    def add(self, ids: Sequence[int] | Ids, users: Sequence[str], vectors: ArrayLike) -> None:
        """Adds rows; a known id is replaced. Adds all of them or none."""
        rows = _half_precision(vectors, self.dimensions)
        if not len(ids) == len(users) == len(rows):
            raise ValueError(f"{len(ids)} ids, {len(users)} users and {len(rows)} vectors")
        with self._writing:
            self._segments.append(np.asarray(ids, np.int64), users, rows)
            self._compact()

    def remove(self, ids: Collection[int]) -> None:
        """Removes rows; unknown ids are ignored."""
        with self._writing:
            self._segments.remove(ids)
            self._compact()

    def nearest(self, query: ArrayLike, k: int, *, user: str | None = None, within: Within | None = None) -> Nearest:
        """The `k` nearest rows: of everyone, of one user, or of the ids in `within`."""
        return NOTHING if k <= 0 else next(self.batches(query, k, user=user, within=within), NOTHING)

    def batches(
        self, query: ArrayLike, size: int, *, user: str | None = None, within: Within | None = None
    ) -> Iterator[Nearest]:
        """The same rows in batches of `size`, then ever larger ones, until there are no more.

        For a caller that filters in the database: what the first batch computed is kept for the next. Later
        batches see the rows as they were at the first.
        """
        target = _half_precision([np.asarray(query)], self.dimensions)[0].astype(np.float32)
        snapshot, chosen = self._segments.choose(user, within)
        size = max(1, size)
        if chosen is None and snapshot.used > SCORED_COMPLETELY:
            yield from _coarse_to_fine(snapshot, target, size)
            return
        ranking, at = snapshot.nearest(np.arange(snapshot.used) if chosen is None else chosen, target), 0
        while at < len(ranking):
            yield ranking.part(at, at + size)
            at, size = at + size, size * 4

    def _compact(self) -> None:
        if (dead := self._segments.used - len(self)) > WORTH_COMPACTING and dead > len(self):
            self._segments = self._segments.compacted()


@dataclass(slots=True)
class Segment:
    """A run of slots. `bits` is stored word by word, so that one word of all rows lies together.

    Slots that readers have seen never change, except that `alive` is exchanged for another array.
    """

    start: int
    rows: NDArray[np.float16]
    bits: NDArray[np.uint64]
    ids: Ids
    alive: NDArray[np.bool_]

    @classmethod
    def empty(cls, start: int, size: int, dimensions: int) -> "Segment":
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
class SegmentsSnapshot:
    """The rows as they were at one moment, whatever is written meanwhile."""

    segments: tuple[Segment, ...]
    alive: tuple[NDArray[np.bool_], ...]
    used: int

    def nearest(self, slots: Slots, target: NDArray[np.float32]) -> Nearest:
        """The living rows among ascending slots, best first."""
        parts = [self._score(slots[at : at + SCORED_AT_ONCE], target) for at in range(0, len(slots), SCORED_AT_ONCE)]
        if not parts:
            return NOTHING
        return Nearest.ranked(*(map(np.concatenate, zip(*parts, strict=True)) if len(parts) > 1 else parts[0]))

    def _score(self, slots: Slots, target: NDArray[np.float32]) -> tuple[Ids, Scores]:
        rows, ids = np.empty((len(slots), len(target)), np.float16), np.empty(len(slots), np.int64)
        living = np.empty(len(slots), np.bool_)
        edges = np.searchsorted(slots, [*(segment.start for segment in self.segments), self.used]).tolist()
        for segment, alive, (low, high) in zip(self.segments, self.alive, pairwise(edges), strict=True):
            if low < high:
                here = slots[low:high] - segment.start
                rows[low:high], ids[low:high], living[low:high] = segment.rows[here], segment.ids[here], alive[here]
        scores = single_precision(rows) @ target
        return (ids, scores) if living.all() else (ids[living], scores[living])

    def distances(self, bits: NDArray[np.uint64]) -> NDArray[np.uint16]:
        """How many signs of each slot differ from those of the query; dead slots are farthest."""
        counts = np.empty(self.used, np.uint16)
        for segment, alive in zip(self.segments, self.alive, strict=True):
            here = counts[segment.start : segment.end]
            size = len(here)
            here[:] = np.bitwise_count(segment.bits[0, :size] ^ bits[0])
            for word in range(1, len(bits)):
                here += np.bitwise_count(segment.bits[word, :size] ^ bits[word])
            here[~alive[:size]] = 64 * len(bits) + 1
        return counts


@dataclass(slots=True)
class VectorSegments:
    """Where rows are and whose. Written by one thread at a time; `publishing` is held for moments only."""

    dimensions: int
    segments: list[Segment] = field(default_factory=list)
    slots: dict[int, int] = field(default_factory=dict)
    of_user: dict[str, list[Slots]] = field(default_factory=dict)
    used: int = 0
    publishing: threading.Lock = field(default_factory=threading.Lock)

    def choose(self, user: str | None, within: Within | None) -> tuple[SegmentsSnapshot, Slots | None]:
        """The rows as they are now and which of them to score, in ascending order; None for all."""
        with self.publishing:
            alive = tuple(segment.alive for segment in self.segments)
            snapshot = SegmentsSnapshot(tuple(self.segments), alive, self.used)
            own_parts = None if user is None else self.of_user.get(user, [_NO_SLOTS])
            named = None if within is None else [self.slots.get(int(row_id), -1) for row_id in within]
        own = None if own_parts is None else np.concatenate(own_parts)
        if named is None:
            return snapshot, own
        known = np.unique(np.array(named, np.int64))
        known = known[known >= 0]
        return snapshot, known if own is None else np.intersect1d(known, own)

    def append(self, ids: Ids, users: Sequence[str], rows: NDArray[np.float16]) -> None:
        first, at, segments = self.used, 0, list(self.segments)
        while at < len(ids):
            slot = first + at
            if not segments or slot >= segments[-1].end:
                size = min(max(slot, FIRST_SEGMENT), LARGEST_SEGMENT)
                segments.append(Segment.empty(slot, size, self.dimensions))
            segment = segments[-1]
            stop = min(len(ids), segment.end - first)
            here = slice(slot - segment.start, first + stop - segment.start)
            segment.rows[here], segment.ids[here] = rows[at:stop], ids[at:stop]
            segment.bits[:, here] = sign_bits(rows[at:stop]).T
            at = stop
        places = dict(zip(ids.tolist(), range(first, first + len(ids)), strict=True))
        repeated = set(range(first, first + len(ids))).difference(places.values())
        by_user: dict[str, list[int]] = {}
        for slot, user in enumerate(users, first):
            by_user.setdefault(user, []).append(slot)
        with self.publishing:
            replaced = [self.slots[row_id] for row_id in places if row_id in self.slots]
            self.segments, self.used = segments, first + len(ids)
            self.slots.update(places)
            for user, slots in by_user.items():
                parts = self.of_user.get(user, [])
                # Another list, because readers hold the old one; joined now and then, because searches join it.
                joined = [np.concatenate(parts)] if len(parts) > 8 else parts
                self.of_user[user] = [*joined, np.array(slots, np.int64)]
            self._mark_dead([*replaced, *repeated])

    def remove(self, ids: Collection[int]) -> None:
        with self.publishing:
            self._mark_dead([slot for row_id in ids if (slot := self.slots.pop(int(row_id), -1)) >= 0])

    def _mark_dead(self, dead: Collection[int]) -> None:
        slots = np.array(sorted(dead), np.int64)
        for segment in self.segments:
            low, high = np.searchsorted(slots, [segment.start, segment.end])
            if low < high:
                # Another array, because readers hold the old one.
                alive = segment.alive.copy()
                alive[slots[low:high] - segment.start] = False
                segment.alive = alive

    def compacted(self) -> "VectorSegments":
        """The living rows alone."""
        living = VectorSegments(self.dimensions)
        owner = {slot: user for user, parts in self.of_user.items() for part in parts for slot in part.tolist()}
        for segment in self.segments:
            here = np.flatnonzero(segment.alive[: self.used - segment.start])
            users = [owner[slot] for slot in (here + segment.start).tolist()]
            living.append(segment.ids[here], users, segment.rows[here])
        return living


def _coarse_to_fine(snapshot: SegmentsSnapshot, target: NDArray[np.float32], size: int) -> Iterator[Nearest]:
    """Ranks by signs, rescores the front of that ranking exactly, and goes on from there when asked for more."""
    bits = sign_bits(target[None, :])[0]
    distances = snapshot.distances(bits)
    farthest = 64 * len(bits)
    within = np.bincount(distances, minlength=farthest + 2)[: farthest + 1].cumsum()
    sample = snapshot.nearest(np.arange(0, snapshot.used, max(1, snapshot.used // SAMPLED_ROWS)), target)
    reached, returned, pool = -1, 0, NOTHING
    while returned < within[-1]:
        limit = min(int(np.searchsorted(within, max(LEAST_RESCORED, RESCORED_FOR_ONE * (returned + size)))), farthest)
        if limit > reached:
            slots = np.flatnonzero((distances <= limit) & (distances > reached) if returned else distances <= limit)
            rescored = snapshot.nearest(slots, target)
            ids, scores = np.concatenate((pool.ids, rescored.ids)), np.concatenate((pool.scores, rescored.scores))
            pool, reached = Nearest.ranked(ids, scores), limit
        yield replace(pool.part(0, size), mean=sample.mean, spread=sample.spread)
        returned += min(size, len(pool))
        pool = pool.part(size)
        size *= 4


def _half_precision(vectors: ArrayLike, dimensions: int) -> NDArray[np.float16]:
    """The vectors in half precision. Raises ProviderError when they cannot be compared."""
    rows = np.asarray(vectors)
    if not len(rows):
        return np.empty((0, dimensions), np.float16)
    if rows.ndim != 2 or rows.shape[1] != dimensions:
        raise ProviderError(f"It gave vectors of shape {rows.shape!r} where {dimensions} numbers each were expected.")
    if rows.dtype != np.float16:
        with np.errstate(over="ignore", invalid="ignore"):
            rows = rows.astype(np.float16)
    # Bits, because half precision is slow to compute with.
    if ((rows.view(np.int16) & _NOT_FINITE) == _NOT_FINITE).any():
        raise ProviderError("It gave a vector with a number that is not finite.")
    return rows


def single_precision(rows: NDArray[np.float16]) -> NDArray[np.float32]:
    """The result of `astype` for finite numbers, in a quarter of its time: the bits are moved to where single precision
    has them, and one product corrects the exponent."""
    bits = rows.view(np.int16).astype(np.int32)
    bits <<= 13
    bits &= _SIGN_AND_NUMBER
    numbers = bits.view(np.float32)
    numbers *= _EXPONENT_SHIFT
    return numbers


def sign_bits(rows: NDArray[np.float16] | NDArray[np.float32]) -> NDArray[np.uint64]:
    """One bit for each number, 64 to a word, the last word padded with zeros."""
    # A number is above zero where its bits are, read as an integer; half precision is slow to compare.
    packed = np.packbits(rows.view(f"i{rows.itemsize}") > 0, axis=1)
    padded = np.zeros((len(rows), 8 * -(-rows.shape[1] // 64)), np.uint8)
    padded[:, : packed.shape[1]] = packed
    return padded.view(np.uint64)
