# ruff: noqa: A002  `filter` and `id` are names of the VectorStore protocol
"""A vector store in this process: exact search with numpy, in a thread when there are many chunks.

A chunk takes a new slot and keeps it: replacing or deleting only marks the old slot as dead, so a search in another
thread never sees a row change. Metadata is kept by key (`Columns`), so that a filter does not look at every chunk.
"""

import asyncio
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from reflexio.agents.vectors.bm25 import WordIndex, fuse
from reflexio.agents.vectors.embedding import (
    EmbeddedChunks,
    EmbedderChoice,
    EmbeddingStore,
    Vectors,
    check_hits,
    choose_diverse,
    pool_size,
    unit_query,
)
from reflexio.agents.vectors.embedding import embedder as resolve_embedder
from reflexio.agents.vectors.saved_store import read_store, write_store
from reflexio.agents.vectors.store import (
    AllOf,
    AnyOf,
    Chunk,
    Condition,
    Filter,
    Not,
    OneOf,
    Ordered,
    Present,
    SearchResult,
    identity,
    parse_filter,
)
from reflexio.errors import InvalidRequest
from reflexio.providers.embedding.local import use_one_thread

LARGE = 20_000
"""From this number of chunks a search runs in a thread; below, starting the thread costs more than the search."""
FIRST_CAPACITY = 1_024
# If fewer than one in so many rows match the filter, only those are multiplied.
SPARSE = 64
LEAST_DEAD_TO_COMPACT = 1_024
MISSING = 0
# Up to so many values, comparing with each in turn is faster than numpy's `isin`.
FEW_VALUES = 8

Metadata = Mapping[str, Any]
Mask = NDArray[np.bool_]
Slots = NDArray[np.int64]


class InMemoryVectorStore(EmbeddingStore):
    """Chunks and their vectors, searched by cosine over every row.

    >>> store = InMemoryVectorStore()  # doctest: +SKIP
    >>> await store.add([Chunk("Write dates as ISO 8601.", {"user_id": "ada"})])  # doctest: +SKIP
    """

    def __init__(self, embedder: EmbedderChoice = None) -> None:
        use_one_thread()
        self.embedder = resolve_embedder(embedder)
        self._rows = Rows(self.embedder.dimensions)
        # Event loops in several threads may share a store. The lock is held briefly, never across an await.
        self._lock = threading.Lock()

    @classmethod
    async def from_chunks(cls, chunks: Sequence[Chunk], embedder: EmbedderChoice = None) -> Self:
        """A store that holds these chunks."""
        store = cls(embedder)
        await store.add(chunks)
        return store

    @classmethod
    async def from_texts(
        cls, texts: Sequence[str], embedder: EmbedderChoice = None, *, metadatas: Sequence[Metadata] | None = None
    ) -> Self:
        """A store that holds these texts."""
        pairs = zip(texts, [{} for _ in texts] if metadatas is None else metadatas, strict=True)
        return await cls.from_chunks([Chunk(text, dict(metadata)) for text, metadata in pairs], embedder)

    async def _insert(self, new: EmbeddedChunks) -> None:
        with self._lock:
            self._rows.append(new.ids, new.contents, new.metadata, new.vectors)
            self._rows = self._rows.compacted()

    async def delete(self, ids: Sequence[str]) -> None:
        """Deletes chunks; unknown ids are ignored."""
        with self._lock:
            for chunk_id in ids:
                self._rows.remove(chunk_id)
            self._rows = self._rows.compacted()

    async def count(self) -> int:
        return len(self._rows.slots)

    async def get_by_ids(self, ids: Sequence[str]) -> list[Chunk]:
        """The chunks that exist, in the order of `ids`."""
        with self._lock:
            rows = self._rows
            return [rows.chunk(rows.slots[chunk_id]) for chunk_id in ids if chunk_id in rows.slots]

    async def bump(self, id: str, counts: Mapping[str, int]) -> None:
        """Adds to numbers in a chunk's metadata atomically; an unknown id is ignored."""
        with self._lock:
            rows = self._rows
            if (slot := rows.slots.get(id)) is not None:
                before = rows.metadata[slot]
                after = before | {key: before.get(key, 0) + number for key, number in counts.items()}
                rows.append([id], [rows.contents[slot]], [after], rows.vectors[:, slot].copy()[None, :])
                self._rows = rows.compacted()

    async def _nearest(self, query: Vectors, condition: Condition, k: int, diversity: float) -> list[SearchResult]:
        pool = pool_size(k, diversity)
        with self._lock:
            rows = self._rows
            matches = rows.matching(condition)
            vectors = rows.vectors[:, : len(matches)]
        if len(matches) < LARGE:
            slots, scores = nearest(vectors, matches, query, pool)
        else:
            slots, scores = await asyncio.to_thread(nearest, vectors, matches, query, pool)
        if diversity:
            chosen = choose_diverse(scores, vectors[:, slots].T, k, diversity)
            slots, scores = slots[chosen], scores[chosen]
        hits = zip(slots.tolist(), scores.tolist(), strict=True)
        return [SearchResult(rows.chunk(slot), score, rows.ids[slot]) for slot, score in hits]

    async def search_hybrid(
        self, query: str, *, k: int = 4, filter: Filter = None, alpha: float = 0.5
    ) -> list[SearchResult]:
        """The `k` best chunks by meaning and by words together, for names and numbers that an embedder blurs.

        `alpha` is the weight of the vectors: 1 is `search`, 0 ranks by words alone. Scores are those of the fusion.
        """
        check_hits(k)
        if not 0.0 <= alpha <= 1.0:
            raise InvalidRequest(f"alpha must be between 0 and 1, not {alpha!r}.")
        condition = parse_filter(filter)
        vector = unit_query(await self.embedder.embed(query), self.embedder.dimensions)
        if len(self._rows.ids) < LARGE:
            return self._hybrid(query, vector, condition, k, alpha)
        return await asyncio.to_thread(self._hybrid, query, vector, condition, k, alpha)

    def _hybrid(self, query: str, vector: Vectors, condition: Condition, k: int, alpha: float) -> list[SearchResult]:
        pool = pool_size(k, 1.0)
        with self._lock:
            rows = self._rows
            matches = rows.matching(condition)
            vectors = rows.vectors[:, : len(matches)]
            by_words = rows.words.best(query, matches, pool) if alpha < 1 else []
        by_vector, _ = nearest(vectors, matches, vector, pool)
        fused = fuse(by_vector.tolist(), by_words, alpha)[:k]
        return [SearchResult(rows.chunk(slot), score, rows.ids[slot]) for slot, score in fused]

    async def save(self, path: str | Path) -> None:
        """Writes everything to one file atomically, replacing an existing one."""
        with self._lock:
            rows, kept = self._rows, sorted(self._rows.slots.values())
        header = {
            "embedder": self.embedder.name,
            "rows": [[rows.ids[slot], rows.contents[slot], rows.metadata[slot]] for slot in kept],
        }
        await asyncio.to_thread(write_store, Path(path), header, rows.vectors[:, kept])

    @classmethod
    async def load(cls, path: str | Path, embedder: EmbedderChoice = None) -> Self:
        """The store that was saved to this file. The embedder must be the one that embedded it."""
        name, rows, vectors = await asyncio.to_thread(read_store, Path(path))
        store = cls(embedder)
        if name != store.embedder.name:
            raise InvalidRequest(
                f"{str(path)!r} was embedded by {name!r}; {store.embedder.name!r} cannot search in it. "
                "Load it with the embedder that filled it."
            )
        if vectors.shape != (store.embedder.dimensions, len(rows)):
            raise InvalidRequest(
                f"{str(path)!r} is no saved vector store: its texts and its vectors do not fit together."
            )
        ids, contents, metadata = zip(*rows, strict=True) if rows else ((), (), ())
        store._rows.append(ids, contents, metadata, vectors.T)
        return store


class Rows:
    """Slots of chunks and unit vectors. One thread writes; `nearest` runs in any thread, on the rows it was given."""

    def __init__(self, dimensions: int) -> None:
        # One row for each dimension: numpy's product reads this a third faster than one row for each chunk.
        self.vectors: Vectors = np.empty((dimensions, FIRST_CAPACITY), np.float32)
        self.alive: Mask = np.zeros(FIRST_CAPACITY, np.bool_)
        self.ids: list[str] = []
        self.contents: list[str] = []
        self.metadata: list[dict[str, Any]] = []
        self.slots: dict[str, int] = {}
        self.columns = Columns(self.metadata)
        self.words = WordIndex(self.contents)

    def append(
        self, ids: Sequence[str], contents: Sequence[str], metadata: Sequence[dict[str, Any]], vectors: Vectors
    ) -> None:
        first, used, capacity = len(self.ids), len(self.ids) + len(ids), len(self.alive)
        if used > capacity:
            more = max(used, 2 * capacity) - capacity
            self.vectors = np.concatenate((self.vectors, np.empty((len(self.vectors), more), np.float32)), axis=1)
            self.alive = np.concatenate((self.alive, np.zeros(more, np.bool_)))
        self.vectors[:, first:used] = vectors.T
        self.ids += ids
        self.contents += contents
        self.metadata += metadata
        for slot, chunk_id in enumerate(ids, first):
            self.remove(chunk_id)
            self.slots[chunk_id] = slot
            self.alive[slot] = True

    def remove(self, chunk_id: str) -> None:
        if (slot := self.slots.pop(chunk_id, None)) is not None:
            self.alive[slot] = False

    def matching(self, condition: Condition) -> Mask:
        """The living slots that match, at this moment."""
        return self.alive[: len(self.ids)] & self.columns.mask(condition)

    def chunk(self, slot: int) -> Chunk:
        return Chunk(self.contents[slot], dict(self.metadata[slot]))

    def compacted(self) -> "Rows":
        """These rows, without the dead ones if those have become many."""
        if len(self.ids) - len(self.slots) < max(LEAST_DEAD_TO_COMPACT, len(self.slots)):
            return self
        kept = sorted(self.slots.values())
        rows = Rows(len(self.vectors))
        ids, contents = [self.ids[slot] for slot in kept], [self.contents[slot] for slot in kept]
        rows.append(ids, contents, [self.metadata[slot] for slot in kept], self.vectors[:, kept].T)
        return rows


@dataclass
class Column:
    """The values of one key, each as a number. Number 0 stands for slots without the key."""

    numbers: NDArray[np.int32] = field(default_factory=lambda: np.empty(1024, np.int32))
    values: list[Any] = field(default_factory=lambda: [None])
    number_of: dict[Hashable, int] = field(default_factory=dict)
    filled: int = 0

    def fill(self, key: str, rows: Sequence[Metadata]) -> None:
        if len(rows) > len(self.numbers):
            self.numbers = np.concatenate((self.numbers, np.empty(len(rows), np.int32)))
        new = [self._number(row[key]) if key in row else MISSING for row in rows[self.filled :]]
        self.numbers[self.filled : len(rows)] = new
        self.filled = len(rows)

    def _number(self, value: Any) -> int:
        number = self.number_of.setdefault(identity(value), len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return number

    def equal(self, values: Sequence[Any]) -> Mask:
        known = [self.number_of[identity(value)] for value in values if identity(value) in self.number_of]
        if None in values:
            known.append(MISSING)
        numbers = self.numbers[: self.filled]
        if len(known) > FEW_VALUES:
            return np.isin(numbers, known)
        return _combine(np.logical_or, [numbers == number for number in known], np.zeros(self.filled, np.bool_))

    def present(self) -> Mask:
        return np.not_equal(self.numbers[: self.filled], MISSING)

    def where(self, holds: Callable[[Any], bool]) -> Mask:
        table = np.array([number != MISSING and holds(value) for number, value in enumerate(self.values)])
        return table[self.numbers[: self.filled]]


class Columns:
    """Evaluates conditions on rows of metadata; `rows` is the caller's list, which only grows.

    A key becomes a column when a filter first names it. Since slots are only added, a column continues where it
    stopped.
    """

    def __init__(self, rows: Sequence[Metadata]) -> None:
        self._rows = rows
        self._columns: dict[str, Column] = {}

    def mask(self, condition: Condition) -> Mask:
        """Which rows match."""
        match condition:
            case OneOf(key, values):
                return self._column(key).equal(values)
            case Ordered(key):
                return self._column(key).where(condition.holds_for)
            case Present(key):
                return self._column(key).present()
            case Not(inner):
                return ~self.mask(inner)
            case AllOf(parts):
                return _combine(np.logical_and, list(map(self.mask, parts)), np.ones(len(self._rows), np.bool_))
            case AnyOf(parts):
                return _combine(np.logical_or, list(map(self.mask, parts)), np.zeros(len(self._rows), np.bool_))

    def _column(self, key: str) -> Column:
        column = self._columns.setdefault(key, Column())
        column.fill(key, self._rows)
        return column


def _combine(function: Callable[[Mask, Mask], Mask], masks: Sequence[Mask], if_empty: Mask) -> Mask:
    return reduce(function, masks) if masks else if_empty


def nearest(rows: Vectors, matches: Mask, query: Vectors, k: int) -> tuple[Slots, Vectors]:
    """Slots of the `k` nearest matches and their cosines, best first; ties are ordered by age."""
    count = int(np.count_nonzero(matches))
    if count * SPARSE < len(matches):
        slots = np.flatnonzero(matches)
        scores = query @ rows[:, slots]
    else:
        scores = query @ rows
        if count < len(matches):
            scores[~matches] = -np.inf
        # Rows that tie with the last one are kept as well, or numpy would decide their order.
        least = np.partition(scores, len(scores) - k)[len(scores) - k] if count > k else np.float32(-2)
        slots = np.flatnonzero(scores >= least)
        scores = scores[slots]
    order = np.lexsort((slots, -scores))[:k]
    return slots[order], np.clip(scores[order], -1.0, 1.0)
