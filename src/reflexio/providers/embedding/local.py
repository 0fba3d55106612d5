"""The embedder that needs no key, no download and no network: all-MiniLM-L6-v2, shipped in the package."""

import os
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from threading import Lock
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from reflexio.providers.embedding.blas import use_one_thread
from reflexio.providers.embedding.lane import Lane
from reflexio.providers.embedding.minilm import WIDTH, MiniLM
from reflexio.providers.embedding.wordpiece import WordPiece

MODEL = Path(__file__).parent / "all_minilm_l6_v2"
MAX_TOKENS = 256
BATCH_TOKENS = 128  # padding included; twice as many are 7 % faster, and a query waits twice as long
MOST_THREADS = 4

T = TypeVar("T")
Batch = tuple[list[int], list[list[int]]]


class LocalEmbedder:
    """Embeds in threads of its own, so that a query never waits behind an import.

    The model is loaded at the first call. A call is cut into batches of about `BATCH_TOKENS` and has one of
    them under way at a time: a large import keeps one processor busy and leaves the others to those who ask.
    When all are taken, whoever wants least goes next. The threads are ours: numpy's own are switched off.
    """

    name = "local:all-MiniLM-L6-v2"
    dimensions = WIDTH

    def __init__(self) -> None:
        self._lane = Lane("reflexio-embedder", threads=max(2, min(os.cpu_count() or 2, MOST_THREADS)))

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
    return places, _loaded(_model).vectors(ids)


def _batches(texts: Sequence[str]) -> Iterator[Batch]:
    """Texts of like length together, longest last: little is padded. Tokenised only when their turn comes."""
    tokeniser = _loaded(_tokeniser)
    places: list[int] = []
    batch: list[list[int]] = []
    longest = 0
    for place in sorted(range(len(texts)), key=lambda place: len(texts[place])):
        ids = tokeniser.ids(texts[place])
        longest = max(longest, len(ids))
        if batch and (len(batch) + 1) * longest > BATCH_TOKENS:
            yield places, batch
            places, batch, longest = [], [], len(ids)
        places.append(place)
        batch.append(ids)
    yield places, batch


_loading = Lock()


def _loaded(part: Callable[[], T]) -> T:
    with _loading:
        return part()


@lru_cache(maxsize=1)
def _tokeniser() -> WordPiece:
    return WordPiece((MODEL / "vocab.txt").read_text("utf-8").splitlines(), max_tokens=MAX_TOKENS)


@lru_cache(maxsize=1)
def _model() -> MiniLM:
    use_one_thread()
    return MiniLM.load(MODEL / "weights.npz")
