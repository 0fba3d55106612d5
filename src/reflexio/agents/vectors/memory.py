"""Embedded texts in this process: exact, in numpy, and off the event loop when there are many."""

import asyncio
import json
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self
from uuid import uuid4
from zipfile import BadZipFile

import numpy as np

from reflexio.agents.embedding import AnyEmbedder, embedder
from reflexio.agents.stores import Chunk, SearchResult
from reflexio.agents.vectors.diversity import checked, pool
from reflexio.agents.vectors.filters import condition
from reflexio.agents.vectors.intake import Vectors, taken, target
from reflexio.agents.vectors.rows import Rows, nearest, varied
from reflexio.errors import InvalidRequest
from reflexio.providers.embedding.local import use_one_thread

LARGE = 20_000
"""Chunks from which a search leaves the event loop; below, the hop to a thread costs more than the search."""
FORMAT = 1


class InMemoryVectorStore:
    """Chunks and their vectors, searched by cosine over every row.

    >>> store = InMemoryVectorStore()  # doctest: +SKIP
    >>> await store.add([Chunk("Write dates as ISO 8601.", {"user_id": "ada"})])  # doctest: +SKIP
    """

    def __init__(self, embedder_: AnyEmbedder | str | None = None, /) -> None:
        use_one_thread()
        self.embedder = embedder(embedder_)
        self._rows = Rows(self.embedder.dimensions)
        # Event loops in several threads may share a store. Held for moments, never while something is awaited.
        self._changing = threading.Lock()

    @classmethod
    async def from_chunks(cls, chunks: Sequence[Chunk], embedder: AnyEmbedder | str | None = None) -> Self:
        """A store that holds these chunks."""
        store = cls(embedder)
        await store.add(chunks)
        return store

    @classmethod
    async def from_texts(
        cls,
        texts: Sequence[str],
        embedder: AnyEmbedder | str | None = None,
        *,
        metadatas: Sequence[Mapping[str, Any]] | None = None,
    ) -> Self:
        """A store that holds these texts."""
        known = [{} for _ in texts] if metadatas is None else metadatas
        chunks = [Chunk(text, dict(metadata)) for text, metadata in zip(texts, known, strict=True)]
        return await cls.from_chunks(chunks, embedder)

    async def add(self, chunks: Sequence[Chunk], ids: Sequence[str] | None = None) -> list[str]:
        """Stores chunks, all or none, and returns their ids. An id that is known already is replaced."""
        new = await taken(self.embedder, chunks, ids)
        with self._changing:
            self._rows.append(new.ids, new.contents, new.metadata, new.vectors)
            self._rows = self._rows.compacted()
        return new.ids if ids is None else list(ids)

    async def delete(self, ids: Sequence[str]) -> None:
        """Forgets chunks; unknown ids are passed over."""
        with self._changing:
            for each in ids:
                self._rows.bury(each)
            self._rows = self._rows.compacted()

    async def count(self) -> int:
        return len(self._rows.slots)

    async def get_by_ids(self, ids: Sequence[str]) -> list[Chunk]:
        """Those that are there, in the order asked for."""
        with self._changing:
            rows = self._rows
            return [rows.chunk(rows.slots[each]) for each in ids if each in rows.slots]

    async def bump(self, id: str, counts: Mapping[str, int]) -> None:  # noqa: A002
        """Adds to numbers in a chunk's metadata, in one go; an unknown id is passed over."""
        with self._changing:
            rows = self._rows
            if (slot := rows.slots.get(id)) is not None:
                known = rows.metadata[slot]
                after = known | {key: known.get(key, 0) + more for key, more in counts.items()}
                rows.append([id], [rows.contents[slot]], [after], rows.vector(slot)[None, :])
                self._rows = rows.compacted()

    async def search(
        self,
        query: str,
        *,
        k: int = 4,
        filter: Mapping[str, Any] | None = None,  # noqa: A002
        diversity: float | None = None,
    ) -> list[SearchResult]:
        """The `k` chunks nearest to a text, best first, of those that answer the filter."""
        vector = await self.embedder.embed(query)
        return await self.search_by_vector(vector, k=k, filter=filter, diversity=diversity)

    async def search_by_vector(
        self,
        vector: Sequence[float],
        *,
        k: int = 4,
        filter: Mapping[str, Any] | None = None,  # noqa: A002
        diversity: float | None = None,
    ) -> list[SearchResult]:
        """The `k` chunks nearest to a vector, best first, of those that answer the filter."""
        checked(k, diversity)
        query = target(vector, self.embedder.dimensions)
        asked, most = condition(filter), pool(k, diversity)
        with self._changing:
            rows = self._rows
            wanted = rows.wanted(asked)
            vectors = rows.vectors[:, : len(wanted)]
        if len(wanted) < LARGE:
            slots, scores = nearest(vectors, wanted, query, most)
        else:
            slots, scores = await asyncio.to_thread(nearest, vectors, wanted, query, most)
        if diversity:
            slots, scores = varied(vectors, slots, scores, k, diversity)
        return [rows.result(slot, score) for slot, score in zip(slots.tolist(), scores.tolist(), strict=True)]

    async def save(self, path: str | Path) -> None:
        """Writes everything to one file, in place of what was there: all of it or nothing."""
        with self._changing:
            rows, kept = self._rows, sorted(self._rows.slots.values())
        told = {
            "format": FORMAT,
            "embedder": self.embedder.name,
            "rows": [[rows.ids[slot], rows.contents[slot], rows.metadata[slot]] for slot in kept],
        }
        await asyncio.to_thread(_write, Path(path), told, rows.vectors[:, kept])

    @classmethod
    async def load(cls, path: str | Path, embedder: AnyEmbedder | str | None = None) -> Self:
        """The store that was saved there. The embedder must be the one that it was filled with."""
        filled_by, rows, vectors = await asyncio.to_thread(_read, Path(path))
        store = cls(embedder)
        if filled_by != store.embedder.name:
            raise InvalidRequest(
                f"{str(path)!r} was embedded by {filled_by!r}; {store.embedder.name!r} cannot search in it."
            )
        if vectors.shape != (store.embedder.dimensions, len(rows)):
            raise InvalidRequest(f"{str(path)!r} is no saved store: its texts and its vectors do not fit together.")
        names, contents, metadata = zip(*rows, strict=True) if rows else ((), (), ())
        store._rows.append(names, contents, metadata, vectors.T)
        return store


def _write(path: Path, told: dict[str, Any], vectors: Vectors) -> None:
    text = np.frombuffer(json.dumps(told).encode(), np.uint8)
    beside = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        with beside.open("wb") as file:
            np.savez(file, told=text, vectors=vectors)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _read(path: Path) -> tuple[str, list[tuple[str, str, dict[str, Any]]], Vectors]:
    """By which embedder, which ids, texts and metadata, and their vectors."""
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            told = json.loads(file["told"].tobytes())
            if told["format"] != FORMAT:
                raise InvalidRequest(f"{str(path)!r} was saved in a format that this version does not know.")
            rows = [(name, content, metadata) for name, content, metadata in told["rows"]]
            return told["embedder"], rows, np.asarray(file["vectors"], np.float32)
    except (TypeError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise InvalidRequest(f"{str(path)!r} is no saved store: {error}") from error
