"""Turning texts into vectors."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """Texts in, unit vectors out, row by row in the order of the texts.

    `name` identifies the model: vectors of different names are never compared. `embed` runs off the event
    loop, may be called concurrently, and returns float32 rows of `dimensions` with length one, all finite,
    for any text: empty, a megabyte long, with lone surrogates. On failure it raises a `ProviderError`:
    `ProviderRefused` (key or bill), `ProviderUnavailable` (worth trying again), or the plain one when the
    provider's answer is not a set of vectors.

    A call with few texts overtakes one with many. A background job that embeds a large import therefore passes
    it as one call, or as a few calls of some dozens of texts, and every query goes first.
    """

    @property
    def name(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    async def embed(self, texts: Sequence[str]) -> "Vectors": ...

    async def aclose(self) -> None:
        """Closes threads and connections; `embed` is not called again."""
