"""The embedder that needs no key, no download and no network: all-MiniLM-L6-v2, shipped in the package."""

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reflexio.providers.embedding.lane import Lane
from reflexio.providers.embedding.minilm import WIDTH, MiniLM
from reflexio.providers.embedding.wordpiece import WordPiece

MODEL = Path(__file__).parent / "all_minilm_l6_v2"
MAX_TOKENS = 256
BATCH_TOKENS = 256  # padding included

Batch = tuple[list[int], list[list[int]]]


class LocalEmbedder:
    """Embeds in one background thread, a small batch at a time, so that a query never waits behind an import.

    The model is loaded at the first call. A call is cut into batches of about `BATCH_TOKENS`; between two of
    them any call that wants less goes first.
    """

    name = "local:all-MiniLM-L6-v2"
    dimensions = WIDTH

    def __init__(self) -> None:
        self._lane = Lane("reflexio-embedder")

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.empty((len(texts), WIDTH), np.float32)
        batches = _batches(texts)
        left = len(texts)
        while left:
            places, vectors[places] = await self._lane.run(partial(_embed_next, batches), size=left)
            left -= len(places)
        return vectors

    async def aclose(self) -> None:
        self._lane.close()


def _embed_next(batches: Iterator[Batch]) -> tuple[list[int], NDArray[np.float32]]:
    places, ids = next(batches)
    return places, _model().vectors(ids)


def _batches(texts: Sequence[str]) -> Iterator[Batch]:
    """Texts of like length together, longest last: little is padded. Tokenised only when their turn comes."""
    places: list[int] = []
    batch: list[list[int]] = []
    longest = 0
    for place in sorted(range(len(texts)), key=lambda place: len(texts[place])):
        ids = _tokeniser().ids(texts[place])
        longest = max(longest, len(ids))
        if batch and (len(batch) + 1) * longest > BATCH_TOKENS:
            yield places, batch
            places, batch, longest = [], [], len(ids)
        places.append(place)
        batch.append(ids)
    yield places, batch


@lru_cache(maxsize=1)
def _tokeniser() -> WordPiece:
    return WordPiece((MODEL / "vocab.txt").read_text("utf-8").splitlines(), max_tokens=MAX_TOKENS)


@lru_cache(maxsize=1)
def _model() -> MiniLM:
    return MiniLM.load(MODEL / "weights.npz")
