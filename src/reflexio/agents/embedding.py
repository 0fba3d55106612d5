"""Embedders as agents use them: one text or several in, lists of numbers out.

The names are those of the server: `local` needs no key and no network and is the default.
"""

from collections.abc import Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from reflexio.errors import InvalidRequest
from reflexio.ports import embedding as ports
from reflexio.providers.embedding.resolve import resolve

DEFAULT = "local"


@runtime_checkable
class Embedder(Protocol):
    """Texts to vectors. Vectors of different `name` are never compared."""

    @property
    def name(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    async def embed(self, text: str) -> list[float]: ...

    async def embed_batch(self, texts: Sequence[str]) -> list[list[float]]: ...


AnyEmbedder: TypeAlias = Embedder | ports.Embedder


class PortEmbedder:
    """An embedder of the server's kind, for agents."""

    def __init__(self, embedder: ports.Embedder) -> None:
        self._embedder = embedder

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def dimensions(self) -> int:
        return self._embedder.dimensions

    async def embed(self, text: str) -> list[float]:
        return (await self.embed_batch([text]))[0]

    async def embed_batch(self, texts: Sequence[str]) -> list[list[float]]:
        vectors: list[list[float]] = (await self._embedder.embed(texts)).tolist()
        return vectors


def embedder(given: AnyEmbedder | str | None = None, *, api_key: str = "", base_url: str = "") -> Embedder:
    """The embedder that is named, or the one that is given; key and base URL are for one that is named.

    >>> embedder().name
    'local:all-MiniLM-L6-v2'
    >>> embedder("openai:nomic-embed-text", base_url="http://127.0.0.1:11434/v1").dimensions
    768
    """
    if given is None or isinstance(given, str):
        return PortEmbedder(resolve(given or DEFAULT, api_key=api_key, base_url=base_url))
    if isinstance(given, Embedder):
        return given
    if hasattr(given, "embed") and hasattr(given, "dimensions"):
        return PortEmbedder(given)
    raise InvalidRequest(f"{given!r} is no embedder: it has no `embed` and no `dimensions`.")
