"""A cache of vectors: people and agents repeat their queries, and one stage embeds what the next one needs."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from reflexio.errors import ProviderUnavailable
from reflexio.ports.embedding import Embedder

Vectors = NDArray[np.float32]
STUCK_SECONDS = 3.0
"""While a query has waited this long, new ones fail at once."""


class CachedEmbedder:
    """Wraps an embedder and caches the vectors of the last `size` texts that came a few at a time.

    Calls with more than `few` texts are imports: they read the cache and do not fill it. Concurrent calls with the
    same query embed it once. While a query is stuck, other queries fail at once instead of waiting, too. Failures are
    not cached. The vector of a single text is shared between callers and read-only. Use one event loop.
    """

    def __init__(
        self, embedder: Embedder, *, size: int = 4096, few: int = 16, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.name = embedder.name
        self.dimensions = embedder.dimensions
        self._embedder = embedder
        self._size = size
        self._few = few
        self._monotonic = monotonic
        self._cache: OrderedDict[bytes, Vectors] = OrderedDict()
        self._pending: dict[bytes, tuple[float, asyncio.Task[Vectors]]] = {}

    @property
    def runtime(self) -> str:
        """What computes the vectors of an embedder that may choose; empty for others."""
        return str(getattr(self._embedder, "runtime", ""))

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if len(texts) != 1:
            return await self._embed_several(texts)
        key = _digest(texts[0])
        if key in self._cache:
            self._cache.move_to_end(key)
            return self._cache[key]
        now = self._monotonic()
        oldest, _ = next(iter(self._pending.values()), (now, None))
        if now - oldest >= STUCK_SECONDS:
            raise ProviderUnavailable(f"{self.name}: a text sent {now - oldest:.0f} s ago is still not embedded")
        if key not in self._pending:
            self._pending[key] = now, asyncio.create_task(self._embed_one(key, texts[0]))
        # Shielded: a caller who gives up does not take the vector away from the others.
        return await asyncio.shield(self._pending[key][1])

    async def aclose(self) -> None:
        for _, task in self._pending.values():
            task.cancel()
        await self._embedder.aclose()

    async def _embed_one(self, key: bytes, text: str) -> Vectors:
        try:
            vectors = await self._embedder.embed([text])
        finally:
            del self._pending[key]
        return self._keep(key, vectors)

    async def _embed_several(self, texts: Sequence[str]) -> Vectors:
        keys = [_digest(text) for text in texts]
        known = {key: self._cache[key] for key in keys if key in self._cache}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if missing:
            vectors = await self._embedder.embed(list(missing.values()))
            for key, vector in zip(missing, vectors, strict=True):
                known[key] = vector[np.newaxis]
                if len(texts) <= self._few:
                    self._keep(key, known[key].copy())
        return np.concatenate([known[key] for key in keys]) if keys else np.empty((0, self.dimensions), np.float32)

    def _keep(self, key: bytes, vectors: Vectors) -> Vectors:
        vectors.flags.writeable = False
        self._cache[key] = vectors
        self._cache.move_to_end(key)
        if len(self._cache) > self._size:
            self._cache.popitem(last=False)
        return vectors


def _digest(text: str) -> bytes:
    """A query of a megabyte takes no more room in the cache than any other."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
