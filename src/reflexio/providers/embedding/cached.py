"""Remembering the vectors of queries: people and agents ask the same things again."""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from reflexio.ports.embedding import Embedder

Key = bytes


class CachedEmbedder:
    """Wraps an embedder and keeps the vectors of the latest `size` queries.

    A query is a call with one text; calls with more are imports and pass through, so that they do not push the
    queries out. The same query asked by several callers at once is embedded once. Failures are not kept.
    The vectors handed out are shared and read-only. Use one event loop.
    """

    def __init__(self, embedder: Embedder, *, size: int = 2048) -> None:
        self._embedder = embedder
        self._size = size
        self._kept: OrderedDict[Key, NDArray[np.float32]] = OrderedDict()
        self._under_way: dict[Key, asyncio.Task[NDArray[np.float32]]] = {}

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def dimensions(self) -> int:
        return self._embedder.dimensions

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if len(texts) != 1:
            return await self._embedder.embed(texts)
        key = _key(texts[0])
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        if key not in self._under_way:
            self._under_way[key] = asyncio.create_task(self._fill(key, texts[0]))
        # Shielded: a caller who gives up does not take the answer away from the others.
        return await asyncio.shield(self._under_way[key])

    async def aclose(self) -> None:
        for task in self._under_way.values():
            task.cancel()
        await self._embedder.aclose()

    async def _fill(self, key: Key, text: str) -> NDArray[np.float32]:
        try:
            vectors = await self._embedder.embed([text])
        finally:
            del self._under_way[key]
        vectors.flags.writeable = False
        self._kept[key] = vectors
        if len(self._kept) > self._size:
            self._kept.popitem(last=False)
        return vectors


def _key(text: str) -> Key:
    """A digest, so that a query of a megabyte takes no more room than another."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
