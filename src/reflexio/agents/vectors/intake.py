"""What goes into a store: chunks with ids, metadata that is JSON, and vectors that can be compared."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from reflexio.agents.embedding import Embedder
from reflexio.agents.stores import Chunk
from reflexio.agents.vectors.filters import as_json
from reflexio.errors import InvalidRequest, ProviderError, ReflexioError

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Intake:
    """Chunks, column by column, each id once."""

    ids: list[str]
    contents: list[str]
    metadata: list[dict[str, Any]]
    vectors: Vectors


async def taken(embedder: Embedder, chunks: Sequence[Chunk], ids: Sequence[str] | None) -> Intake:
    """Chunks as a store keeps them; of chunks with one id, the last."""
    named = _named(chunks, ids)
    metadata = [as_json(dict(chunk.metadata)) for chunk in named.values()]
    contents = [chunk.content for chunk in named.values()]
    given = await embedder.embed_batch(contents) if contents else []
    return Intake(list(named), contents, metadata, _made(given, embedder, len(contents)))


def _named(chunks: Sequence[Chunk], ids: Sequence[str] | None) -> dict[str, Chunk]:
    if ids is None:
        return {f"vec_{uuid4().hex}": chunk for chunk in chunks}
    if len(ids) != len(chunks):
        raise InvalidRequest(f"{len(ids)} ids were given for {len(chunks)} chunks.")
    return dict(zip(ids, chunks, strict=True))


def _made(vectors: Any, embedder: Embedder, count: int) -> Vectors:
    who = f"The embedder {embedder.name!r} gave"
    rows = _unit(vectors, embedder.dimensions, ProviderError, who)
    if len(rows) != count:
        raise ProviderError(f"{who} {len(rows)} vectors for {count} texts.")
    return rows


def target(vector: Any, dimensions: int) -> Vectors:
    """A vector to search with, as a caller gives it."""
    return _unit([vector], dimensions, InvalidRequest, "The query is").reshape(dimensions)


def _unit(vectors: Any, dimensions: int, error: type[ReflexioError], who: str) -> Vectors:
    """Rows of length one, or the error of whoever gave them. A vector of zeros stays one: it is like nothing."""
    try:
        rows = np.asarray(vectors, np.float32)
    except (TypeError, ValueError) as cause:
        raise error(f"{who} something else than vectors of {dimensions} numbers.") from cause
    if not len(rows):
        return np.empty((0, dimensions), np.float32)
    if rows.ndim != 2 or rows.shape[1] != dimensions:
        found = rows.shape[1] if rows.ndim == 2 else "other"
        raise error(f"{who} a vector of {found} numbers where {dimensions} are stored.")
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    if not np.isfinite(lengths).all():
        raise error(f"{who} a vector with a number that is not finite.")
    lengths[lengths == 0] = 1
    of_length_one: Vectors = (rows / lengths[:, None]).astype(np.float32)
    return of_length_one
