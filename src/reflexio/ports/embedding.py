"""Turning texts into vectors."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """Texts in, unit vectors out, row by row in the order given.

    `name` identifies the model: vectors of different names are never compared. `embed` runs off the event
    loop, may be called concurrently, and returns float32 rows of `dimensions` with length one, all finite,
    for any text at all: empty, of a megabyte, with lone surrogates. It raises a `ProviderError` when it
    cannot: `ProviderRefused` (key or bill), `ProviderUnavailable` (worth trying again), or the plain one when
    the provider's answer is no set of vectors.

    A call with few texts overtakes one with many, so whoever embeds a large import in the background passes
    it as one call, or as a few of some dozens of texts, and gives way to every query.
    """

    @property
    def name(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    async def embed(self, texts: Sequence[str]) -> "Vectors": ...

    async def aclose(self) -> None:
        """Let go of threads and connections; `embed` is not called again."""
