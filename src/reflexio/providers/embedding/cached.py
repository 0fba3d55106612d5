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
    """Wraps an embedder and keeps the vectors of recent texts under digests of the texts.

    There are two bounds: the last `size` texts that came at most `few` at a time, as queries and sentences do, and
    the last `size_of_imports` texts of larger calls, so that an import does not push out the queries. Concurrent calls
    with the same query embed it once. While a query is stuck, other queries fail at once instead of waiting, too.
    Failures are not cached. The vector of a single text is shared between callers and read-only. Use one event loop.
    """

    def __init__(
        self,
        embedder: Embedder,
        *,
        size: int = 4096,
        size_of_imports: int = 1024,
        few: int = 64,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = embedder.name
        self.dimensions = embedder.dimensions
        self._embedder = embedder
        self._few = few
        self._monotonic = monotonic
        self._recent = RecentVectors(size)
        self._imported = RecentVectors(size_of_imports)
        self._pending: dict[bytes, tuple[float, asyncio.Task[Vectors]]] = {}

    @property
    def runtime(self) -> str:
        """What computes the vectors of an embedder that may choose; empty for others."""
        return str(getattr(self._embedder, "runtime", ""))

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if len(texts) != 1:
            return await self._embed_several(texts)
        key = _digest(texts[0])
        if (known := self._known(key)) is not None:
            return known
        now = self._monotonic()
        oldest, _ = next(iter(self._pending.values()), (now, None))
        if now - oldest >= STUCK_SECONDS:
            raise ProviderUnavailable(f"{self.name}: a text sent {now - oldest:.0f} s ago is still not embedded")
        if key not in self._pending:
            self._pending[key] = now, asyncio.create_task(self._embed_one(key, texts[0], self._recent.generation))
        # Shielded: a caller who gives up does not take the vector away from the others.
        return await asyncio.shield(self._pending[key][1])

    def forget(self) -> None:
        """Drops all vectors, as after the erasure of a user: which of them were the user's is not known."""
        self._recent.clear()
        self._imported.clear()
        forget_words = getattr(self._embedder, "forget", None)
        if forget_words is not None:
            forget_words()

    async def aclose(self) -> None:
        for _, task in self._pending.values():
            task.cancel()
        await self._embedder.aclose()

    async def _embed_one(self, key: bytes, text: str, generation: int) -> Vectors:
        try:
            vectors = await self._embedder.embed([text])
        finally:
            del self._pending[key]
        vectors.flags.writeable = False
        if generation == self._recent.generation:
            self._recent.keep(key, vectors)
        return vectors

    async def _embed_several(self, texts: Sequence[str]) -> Vectors:
        keys = [_digest(text) for text in texts]
        known = {key: vectors for key in keys if (vectors := self._known(key)) is not None}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if missing:
            kept, generation = self._recent if len(texts) <= self._few else self._imported, self._recent.generation
            vectors = await self._embedder.embed(list(missing.values()))
            for key, vector in zip(missing, vectors, strict=True):
                known[key] = vector[np.newaxis]
                if generation == self._recent.generation:
                    kept.keep(key, known[key].copy())
        return np.concatenate([known[key] for key in keys]) if keys else np.empty((0, self.dimensions), np.float32)

    def _known(self, key: bytes) -> Vectors | None:
        recent = self._recent.get(key)
        return self._imported.get(key) if recent is None else recent


class RecentVectors:
    """The vectors of the `size` texts that were used last."""

    def __init__(self, size: int) -> None:
        self.generation = 0
        self._size = size
        self._vectors: OrderedDict[bytes, Vectors] = OrderedDict()

    def get(self, key: bytes) -> Vectors | None:
        if key in self._vectors:
            self._vectors.move_to_end(key)
        return self._vectors.get(key)

    def keep(self, key: bytes, vectors: Vectors) -> None:
        vectors.flags.writeable = False
        self._vectors[key] = vectors
        self._vectors.move_to_end(key)
        if len(self._vectors) > self._size:
            self._vectors.popitem(last=False)

    def clear(self) -> None:
        """Starts another generation: what was asked for in the last one is not kept."""
        self.generation += 1
        self._vectors.clear()


def _digest(text: str) -> bytes:
    """A query of a megabyte takes no more room in the cache than any other."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
