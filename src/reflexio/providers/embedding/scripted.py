"""The in-memory twin of an embedder: same texts, same vectors, no model, and failures on demand."""

import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

_WORD = re.compile(r"\w+")


class ScriptedEmbedder:
    """A hashed bag of words: texts that share words are near each other, and nothing else is.

    Each of `failures` is raised by one call, in order, before the embedder begins to work. `calls` keeps what
    was asked.

    >>> embedder = ScriptedEmbedder(failures=[ProviderUnavailable()])  # doctest: +SKIP
    """

    def __init__(
        self, *, name: str = "scripted:words", dimensions: int = 64, failures: Iterable[Exception] = ()
    ) -> None:
        self.name = name
        self.dimensions = dimensions
        self.calls: list[tuple[str, ...]] = []
        self._failures = iter(failures)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.calls.append(tuple(texts))
        for failure in self._failures:
            raise failure
        return np.array([self._vector(text) for text in texts], np.float32).reshape(-1, self.dimensions)

    async def aclose(self) -> None:
        """Nothing is held."""

    def _vector(self, text: str) -> NDArray[np.float32]:
        vector = np.zeros(self.dimensions, np.float32)
        for word in _WORD.findall(text.lower()):
            place = int.from_bytes(blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest())
            vector[place % self.dimensions] += 1
        if not vector.any():
            vector[0] = 1
        return vector / np.linalg.norm(vector)
