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
    loop, may be called concurrently, returns float32 rows of `dimensions` with length one (an empty text gets
    some unit vector too), and raises `ProviderRefused` or `ProviderUnavailable` when it cannot.
    """

    @property
    def name(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    async def embed(self, texts: Sequence[str]) -> "Vectors": ...
