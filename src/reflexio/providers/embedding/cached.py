"""Remembering vectors: people and agents ask the same things again, and a stage embeds what the next one needs."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from reflexio.errors import ProviderUnavailable
from reflexio.ports.embedding import Embedder

Key = bytes
STUCK = 3.0
"""Seconds after which nobody waits for a query any more."""


class CachedEmbedder:
    """Wraps an embedder and keeps the vectors of the latest `size` texts that were asked for a few at a time.

    Calls with more than `few` texts are imports: they use what is kept, and do not push it out. The same query asked
    by several callers at once is embedded once. While one is stuck, others are not sent after it: they fail at once.
    Failures are not kept. Vectors of a single text are handed out shared and read-only. Use one event loop.
    """

    def __init__(
        self,
        embedder: Embedder,
        *,
        size: int = 4096,
        few: int = 16,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._embedder = embedder
        self._size = size
        self._few = few
        self._kept: OrderedDict[Key, NDArray[np.float32]] = OrderedDict()
        self._monotonic = monotonic
        self._under_way: dict[Key, asyncio.Task[NDArray[np.float32]]] = {}
        self._since: dict[Key, float] = {}

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def dimensions(self) -> int:
        return self._embedder.dimensions

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if len(texts) != 1:
            return await self._several(texts)
        key = _key(texts[0])
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        self._refuse_while_stuck()
        if key not in self._under_way:
            self._since[key] = self._monotonic()
            self._under_way[key] = asyncio.create_task(self._fill(key, texts[0]))
        # Shielded: a caller who gives up does not take the answer away from the others.
        return await asyncio.shield(self._under_way[key])

    def _refuse_while_stuck(self) -> None:
        waited = self._monotonic() - next(iter(self._since.values()), self._monotonic())
        if waited >= STUCK:
            raise ProviderUnavailable(f"{self.name}: a text that was sent {waited:.0f} s ago is still not embedded")

    async def _several(self, texts: Sequence[str]) -> NDArray[np.float32]:
        keys = [_key(text) for text in texts]
        known = {key: self._kept[key] for key in keys if key in self._kept}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if missing:
            made = await self._embedder.embed(list(missing.values()))
            for key, vector in zip(missing, made, strict=True):
                known[key] = vector[np.newaxis]
                if len(texts) <= self._few:
                    self._keep(key, known[key].copy())
        return np.concatenate([known[key] for key in keys]) if keys else np.empty((0, self.dimensions), np.float32)

    async def aclose(self) -> None:
        for task in self._under_way.values():
            task.cancel()
        await self._embedder.aclose()

    async def _fill(self, key: Key, text: str) -> NDArray[np.float32]:
        try:
            vectors = await self._embedder.embed([text])
        finally:
            del self._under_way[key], self._since[key]
        return self._keep(key, vectors)

    def _keep(self, key: Key, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        vectors.flags.writeable = False
        self._kept[key] = vectors
        self._kept.move_to_end(key)
        if len(self._kept) > self._size:
            self._kept.popitem(last=False)
        return vectors


def _key(text: str) -> Key:
    """A digest, so that a query of a megabyte takes no more room than another."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
