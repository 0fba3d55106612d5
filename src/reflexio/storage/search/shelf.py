"""Where the vectors of a shelf lie: half precision for exact scores, sign bits for a first pass over many.

A row is written to a fresh slot and then made known, never changed in place, so that readers do not wait for
writers. Slots lie in chunks that never move, so that growing copies nothing.
"""

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Scores = NDArray[np.float32]
Slots = NDArray[np.int64]
Within = Collection[int] | Ids

FIRST_CHUNK, LARGEST_CHUNK = 256, 65_536
AT_ONCE = 512
_SIGN_AND_NUMBER = np.uint32(0x8FFFE000).view(np.int32)
_OTHER_EXPONENT = np.float32(2.0**112)


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

    def part(self, low: int, high: int | None = None) -> "Nearest":
        return replace(self, ids=self.ids[low:high], scores=self.scores[low:high])

    @property
    def pairs(self) -> "zip[tuple[int, float]]":
        return zip(self.ids.tolist(), self.scores.tolist(), strict=True)

    def __len__(self) -> int:
        return len(self.ids)


NOTHING = Nearest(np.empty(0, np.int64), np.empty(0, np.float32))
NO_SCORES = NOTHING.ids, NOTHING.scores
_NO_SLOTS: Slots = np.empty(0, np.int64)


@dataclass(slots=True)
class Chunk:
    """A run of slots. `bits` is kept word by word, so that one word of all rows lies together.

    Slots that were handed to readers never change, except that `alive` is exchanged for another array.
    """

    start: int
    rows: NDArray[np.float16]
    bits: NDArray[np.uint64]
    ids: Ids
    alive: NDArray[np.bool_]

    @classmethod
    def empty(cls, start: int, size: int, dimensions: int) -> "Chunk":
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
class View:
    """The rows as they were at one moment, whatever is written meanwhile."""

    chunks: tuple[Chunk, ...]
    alive: tuple[NDArray[np.bool_], ...]
    used: int

    def nearest(self, slots: Slots, target: NDArray[np.float32]) -> Nearest:
        """The living among ascending slots, best first."""
        # A few hundred at a time stay in the processor's cache.
        parts = [self._scored(slots[at : at + AT_ONCE], target) for at in range(0, len(slots), AT_ONCE)] or [NO_SCORES]
        return ranked(*map(np.concatenate, zip(*parts, strict=True))) if len(parts) > 1 else ranked(*parts[0])

    def _scored(self, slots: Slots, target: NDArray[np.float32]) -> tuple[Ids, Scores]:
        rows, ids = np.empty((len(slots), len(target)), np.float16), np.empty(len(slots), np.int64)
        living = np.empty(len(slots), np.bool_)
        for chunk, alive, (low, high) in zip(self.chunks, self.alive, self._edges(slots), strict=True):
            if low < high:
                here = slots[low:high] - chunk.start
                rows[low:high], ids[low:high], living[low:high] = chunk.rows[here], chunk.ids[here], alive[here]
        scores = single_precision(rows) @ target
        return (ids, scores) if living.all() else (ids[living], scores[living])

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
class Shelf:
    """Where rows are and whose. Written by one at a time; `publishing` is held for moments only."""

    dimensions: int
    chunks: list[Chunk] = field(default_factory=list)
    slots: dict[int, int] = field(default_factory=dict)
    of_user: dict[str, list[Slots]] = field(default_factory=dict)
    used: int = 0
    publishing: threading.Lock = field(default_factory=threading.Lock)

    def choose(self, user: str | None, within: Within | None) -> tuple[View, Slots | None]:
        """The rows as they are now and which of them to score, in ascending order; None for all."""
        with self.publishing:
            view = View(tuple(self.chunks), tuple(chunk.alive for chunk in self.chunks), self.used)
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
            chunk.bits[:, here] = sign_bits(rows[at:stop]).T
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

    def _with_room(self, chunks: list[Chunk], slot: int) -> Chunk:
        if not chunks or slot >= chunks[-1].end:
            size = min(max(slot, FIRST_CHUNK), LARGEST_CHUNK)
            chunks.append(Chunk.empty(slot, size, self.dimensions))
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

    def without_the_dead(self) -> "Shelf":
        fresh = Shelf(self.dimensions)
        owner = {slot: user for user, parts in self.of_user.items() for part in parts for slot in part.tolist()}
        for chunk in self.chunks:
            here = np.flatnonzero(chunk.alive[: self.used - chunk.start])
            fresh.append(chunk.ids[here], [owner[slot] for slot in (here + chunk.start).tolist()], chunk.rows[here])
        return fresh


def ranked(ids: Ids, scores: Scores) -> Nearest:
    """Best first, equals by age."""
    order = np.lexsort((ids, -scores))
    spread = float(scores.std()) if len(scores) else 0.0
    return Nearest(ids[order], scores[order], float(scores.mean()) if len(scores) else 0.0, spread, len(ids))


def single_precision(rows: NDArray[np.float16]) -> NDArray[np.float32]:
    """What `astype` gives for finite numbers, in a quarter of its time: bits moved to where single precision has them,
    and the exponent set right by one product."""
    bits = rows.view(np.int16).astype(np.int32)
    bits <<= 13
    bits &= _SIGN_AND_NUMBER
    numbers = bits.view(np.float32)
    numbers *= _OTHER_EXPONENT
    return numbers


def sign_bits(rows: NDArray[np.float16] | NDArray[np.float32]) -> NDArray[np.uint64]:
    """One bit a number, 64 to a word, the last word filled up with zeros."""
    # Numbers are above zero where their bits are, read as an integer; half precision is slow to compare.
    packed = np.packbits(rows.view(f"i{rows.itemsize}") > 0, axis=1)
    padded = np.zeros((len(rows), 8 * -(-rows.shape[1] // 64)), np.uint8)
    padded[:, : packed.shape[1]] = packed
    return padded.view(np.uint64)


def _joined(parts: list[Slots]) -> list[Slots]:
    return [np.concatenate(parts)] if len(parts) > 8 else parts


def _grouped(users: Sequence[str], first: int) -> dict[str, NDArray[np.int64]]:
    slots: dict[str, list[int]] = {}
    for slot, user in enumerate(users, first):
        slots.setdefault(user, []).append(slot)
    return {user: np.array(own, np.int64) for user, own in slots.items()}
