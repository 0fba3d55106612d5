# ruff: noqa: A002  `filter` is a name of the VectorStore protocol
"""Embedders for agents, and what both vector stores do with vectors: check, normalise, and choose diverse hits.

The names of embedders are those of the server: `local` needs no key and no network and is the default.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Protocol, TypeAlias, runtime_checkable
from uuid import uuid4
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from reflexio.agents.vectors.store import Chunk, Condition, Filter, SearchResult, as_json, parse_filter
from reflexio.errors import InvalidRequest, ProviderError, ReflexioError
from reflexio.ports import embedding as ports
from reflexio.providers.embedding.resolve import LOCAL, resolve
from reflexio.settings import Settings

Vectors = NDArray[np.float32]
LEAST_PARAPHRASES = 0.75
PARAPHRASES = (
    ("Extract all dates from the letter.", "List every day that the mail mentions."),
    ("The customer wants the money back.", "A buyer asks for a refund."),
    ("Sort the numbers in ascending order.", "Arrange these figures from small to large."),
    ("Translate this poem into French.", "Give me the verses in the language of Paris."),
    ("The soup needs more salt.", "Add some seasoning to the broth."),
    ("Book a flight to Tokyo.", "Reserve a plane ticket to Japan."),
    ("The server answers too slowly.", "Responses of the backend take too long."),
    ("My bicycle has a flat tyre.", "The wheel of the bike has lost its air."),
    ("Put a clean mug on the desk.", "Place a washed cup on the table."),
    ("The meeting moves to Monday.", "We postpone the appointment to the start of the week."),
    ("Children must be accompanied by an adult.", "Kids may only enter with a grown-up."),
    ("She plays the violin in an orchestra.", "The musician performs on a string instrument."),
)


@runtime_checkable
class AgentEmbedder(Protocol):
    """Texts to vectors. Vectors of different `name` are never compared."""

    @property
    def name(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    async def embed(self, text: str) -> list[float]: ...

    async def embed_batch(self, texts: Sequence[str]) -> list[list[float]]: ...


Embedder = AgentEmbedder
AnyEmbedder: TypeAlias = AgentEmbedder | ports.Embedder
EmbedderChoice: TypeAlias = AnyEmbedder | str | None
"""An embedder, its name, or None for the local one."""


class PortEmbedder:
    """An embedder of the server (`ports.Embedder`) as one for agents.

    `connect` returns it, and is called for each event loop, since a connection belongs to its loop.
    """

    def __init__(self, connect: Callable[[], ports.Embedder]) -> None:
        self._connect = connect
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, ports.Embedder] = WeakKeyDictionary()
        embedder = connect()
        self.name, self.dimensions = embedder.name, embedder.dimensions

    async def embed(self, text: str) -> list[float]:
        return (await self.embed_batch([text]))[0]

    async def embed_batch(self, texts: Sequence[str]) -> list[list[float]]:
        loop = asyncio.get_running_loop()
        if loop not in self._by_loop:
            self._by_loop[loop] = self._connect()
        vectors: list[list[float]] = (await self._by_loop[loop].embed(texts)).tolist()
        return vectors


def embedder(given: EmbedderChoice = None, *, api_key: str = "", base_url: str = "") -> AgentEmbedder:
    """The embedder with this name, or the given embedder as one for agents.

    Key and base URL are for a named embedder; without them, OPENAI_API_KEY and OPENAI_BASE_URL apply.

    >>> embedder().name
    'local:all-MiniLM-L6-v2'
    >>> embedder("openai:nomic-embed-text", base_url="http://127.0.0.1:11434/v1").dimensions
    768
    """
    if given is None or (isinstance(given, str) and given in LOCAL):
        return _local_embedder()
    if isinstance(given, str):
        settings = Settings.read()
        key = api_key or ("" if base_url else settings.openai_api_key)
        url = base_url or ("" if api_key else settings.openai_base_url)
        return PortEmbedder(partial(resolve, given, api_key=key, base_url=url))
    if isinstance(given, AgentEmbedder):
        return given
    if hasattr(given, "embed") and hasattr(given, "dimensions"):
        return PortEmbedder(lambda: given)
    raise InvalidRequest(f"{given!r} is not an embedder: it has no `embed` and no `dimensions`.")


@lru_cache(maxsize=1)
def _local_embedder() -> AgentEmbedder:
    """One for the process, since it has its own threads."""
    local = resolve("local")
    return PortEmbedder(lambda: local)


@dataclass(frozen=True)
class EmbeddedChunks:
    """Chunks in columns, as a store keeps them, each id once."""

    ids: list[str]
    contents: list[str]
    metadata: list[dict[str, Any]]
    vectors: Vectors


async def embed_chunks(embedder: AgentEmbedder, chunks: Sequence[Chunk], ids: Sequence[str] | None) -> EmbeddedChunks:
    """Chunks with ids, metadata that is JSON, and unit vectors; of chunks with the same id, the last."""
    if ids is None:
        by_id = {f"vec_{uuid4().hex}": chunk for chunk in chunks}
    elif len(ids) != len(chunks):
        raise InvalidRequest(f"{len(ids)} ids were given for {len(chunks)} chunks.")
    else:
        by_id = dict(zip(ids, chunks, strict=True))
    metadata = [as_json(dict(chunk.metadata)) for chunk in by_id.values()]
    contents = [chunk.content for chunk in by_id.values()]
    source = f"The embedder {embedder.name!r} gave"
    numbers = await embedder.embed_batch(contents) if contents else []
    vectors = _unit_rows(numbers, embedder.dimensions, ProviderError, source)
    if len(vectors) != len(contents):
        raise ProviderError(f"{source} {len(vectors)} vectors for {len(contents)} texts.")
    return EmbeddedChunks(list(by_id), contents, metadata, vectors)


def _unit_rows(vectors: Any, dimensions: int, error: type[ReflexioError], source: str) -> Vectors:
    """Rows of length one, or `error`. A vector of zeros stays as it is: it is similar to nothing."""
    try:
        rows = np.asarray(vectors, np.float32)
    except (TypeError, ValueError) as cause:
        raise error(f"{source} something else than vectors of {dimensions} numbers.") from cause
    if not len(rows):
        return np.empty((0, dimensions), np.float32)
    if rows.ndim != 2 or rows.shape[1] != dimensions:
        width = rows.shape[1] if rows.ndim == 2 else "other"
        raise error(f"{source} a vector of {width} numbers where {dimensions} are stored.")
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    if not np.isfinite(lengths).all():
        raise error(f"{source} a vector with a number that is not finite.")
    lengths[lengths == 0] = 1
    unit_rows: Vectors = (rows / lengths[:, None]).astype(np.float32)
    return unit_rows


def unit_query(vector: Sequence[float], dimensions: int) -> Vectors:
    """The vector of a query with length one; raises `InvalidRequest` for one of another size."""
    query: Vectors = _unit_rows([vector], dimensions, InvalidRequest, "The query is")[0]
    return query


def check_hits(k: int) -> None:
    if k < 1:
        raise InvalidRequest(f"k must be at least 1, not {k!r}.")


async def measured_noise(embedder: AgentEmbedder) -> float:
    """A cosine that one pair of unrelated sentences in twenty reaches: below it, texts have nothing in common.

    -1, which every text reaches, for an embedder that hardly brings paraphrases nearer than that.
    """
    sentences = [sentence for pair in PARAPHRASES for sentence in pair]
    source = f"The embedder {embedder.name!r} gave"
    vectors = _unit_rows(await embedder.embed_batch(sentences), embedder.dimensions, ProviderError, source)
    cosines = vectors[0::2] @ vectors[1::2].T
    unrelated = cosines[~np.eye(len(cosines), dtype=bool)]
    noise = float(unrelated.mean() + 1.64 * unrelated.std())
    return noise if float((np.diagonal(cosines) > noise).mean()) >= LEAST_PARAPHRASES else -1.0


def pool_size(k: int, diversity: float) -> int:
    """How many of the nearest chunks the `k` hits are chosen from."""
    return max(4 * k, 20) if diversity else k


def choose_diverse(scores: Vectors, rows: Vectors, k: int, diversity: float) -> list[int]:
    """Maximal marginal relevance: positions of `k` rows, near the query and, with `diversity`, far from each other."""
    chosen: list[int] = []
    nearest = np.zeros(len(rows), np.float32)
    left = np.ones(len(rows), np.bool_)
    while left.any() and len(chosen) < k:
        gain = (1 - diversity) * scores - diversity * nearest if chosen else scores
        best = int(np.where(left, gain, -np.inf).argmax())
        left[best] = False
        similarity = rows @ rows[best]
        nearest = np.maximum(nearest, similarity) if chosen else similarity
        chosen.append(best)
    return chosen


class EmbeddingStore(ABC):
    """What both vector stores share: embedding of texts and queries, and the choice of hits."""

    embedder: AgentEmbedder

    async def add(self, chunks: Sequence[Chunk], ids: Sequence[str] | None = None) -> list[str]:
        """Stores chunks, all or none, and returns their ids. A chunk whose id exists is replaced."""
        new = await embed_chunks(self.embedder, chunks, ids)
        await self._insert(new)
        return new.ids if ids is None else list(ids)

    async def search(
        self, query: str, *, k: int = 4, filter: Filter = None, diversity: float | None = None
    ) -> list[SearchResult]:
        """The `k` chunks nearest to a text, best first, among those that match the filter."""
        vector = await self.embedder.embed(query)
        return await self.search_by_vector(vector, k=k, filter=filter, diversity=diversity)

    async def search_by_vector(
        self, vector: Sequence[float], *, k: int = 4, filter: Filter = None, diversity: float | None = None
    ) -> list[SearchResult]:
        """The `k` chunks nearest to a vector, best first, among those that match the filter."""
        check_hits(k)
        if diversity is not None and not 0.0 <= diversity <= 1.0:
            raise InvalidRequest(f"diversity must be between 0 and 1, not {diversity!r}.")
        query = unit_query(vector, self.embedder.dimensions)
        return await self._nearest(query, parse_filter(filter), k, diversity or 0.0)

    @abstractmethod
    async def _insert(self, new: EmbeddedChunks) -> None: ...

    @abstractmethod
    async def _nearest(self, query: Vectors, condition: Condition, k: int, diversity: float) -> list[SearchResult]: ...
