"""Embedders as agents use them: one text or several in, lists of numbers out.

The names are those of the server: `local` needs no key and no network and is the default.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Protocol, TypeAlias, runtime_checkable
from weakref import WeakKeyDictionary

from reflexio.errors import InvalidRequest
from reflexio.ports import embedding as ports
from reflexio.providers.embedding.resolve import LOCAL, resolve
from reflexio.settings import Settings


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
        vectors: list[list[float]] = (await self._here().embed(texts)).tolist()
        return vectors

    def _here(self) -> ports.Embedder:
        return self._embedder


class RemoteEmbedder(PortEmbedder):
    """One that speaks to a provider. A connection belongs to the event loop it was made in: there is one for each."""

    def __init__(self, make: Callable[[], ports.Embedder]) -> None:
        super().__init__(make())
        self._make = make
        self._made: WeakKeyDictionary[asyncio.AbstractEventLoop, ports.Embedder] = WeakKeyDictionary()

    def _here(self) -> ports.Embedder:
        loop = asyncio.get_running_loop()
        if loop not in self._made:
            self._made[loop] = self._make()
        return self._made[loop]


def embedder(given: AnyEmbedder | str | None = None, *, api_key: str = "", base_url: str = "") -> Embedder:
    """The embedder that is named, or the one that is given.

    Key and base URL are for one that is named; without them, OPENAI_API_KEY and OPENAI_BASE_URL count.

    >>> embedder().name
    'local:all-MiniLM-L6-v2'
    >>> embedder("openai:nomic-embed-text", base_url="http://127.0.0.1:11434/v1").dimensions
    768
    """
    if given is None or (isinstance(given, str) and given in LOCAL):
        return _local()
    if isinstance(given, str):
        known = Settings.read()
        key = api_key or ("" if base_url else known.openai_api_key)
        url = base_url or ("" if api_key else known.openai_base_url)
        return RemoteEmbedder(partial(resolve, given, api_key=key, base_url=url))
    if isinstance(given, Embedder):
        return given
    if hasattr(given, "embed") and hasattr(given, "dimensions"):
        return PortEmbedder(given)
    raise InvalidRequest(f"{given!r} is no embedder: it has no `embed` and no `dimensions`.")


@lru_cache(maxsize=1)
def _local() -> Embedder:
    """One for the process, since it has threads of its own."""
    return PortEmbedder(resolve("local"))
