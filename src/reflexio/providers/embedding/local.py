"""The embedder that needs no key, no download and no network: all-MiniLM-L6-v2, which ships in the package.

Decides which thread embeds what and when. `wordpiece` tokenises; `minilm_onnx` computes where onnxruntime is installed,
`minilm` elsewhere, and both give the same vectors.
"""

import asyncio
import ctypes
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache, partial
from importlib import import_module
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from queue import PriorityQueue
from threading import Lock
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from reflexio.providers.embedding.minilm import WIDTH, Floats, MiniLM
from reflexio.providers.embedding.wordpiece import WordPiece

MODEL = Path(__file__).parent / "all_minilm_l6_v2"
MAX_TOKENS = 256
BATCH_TOKENS = 128  # padding included; twice as many are 7 % faster, and a query waits twice as long
MAX_THREADS = 4
OPENBLAS_SETTERS = [f"{build}openblas_set_num_threads{width}" for build in ("scipy_", "") for width in ("64_", "")]

log = logging.getLogger("reflexio.embed")

T = TypeVar("T")
Batch = tuple[list[int], list[list[int]]]
"""The places of some texts, and their token ids."""


class ForwardPass(Protocol):
    """The model in one runtime, which it names."""

    @property
    def runtime(self) -> str: ...

    def vectors(self, batch: Sequence[Sequence[int]]) -> Floats: ...


class LocalEmbedder:
    """Embeds in its own threads, so that a query never waits for an import.

    The first call loads the model. A call is cut into batches of about `BATCH_TOKENS` and runs one of them at a time:
    a large import keeps one processor busy and leaves the others to other callers. When all threads are busy, the
    caller with the fewest texts left goes next. The threads of numpy and onnxruntime are switched off.
    """

    name = "local:all-MiniLM-L6-v2"
    dimensions = WIDTH

    def __init__(self) -> None:
        threads = max(2, min(os.cpu_count() or 2, MAX_THREADS))
        self._pool = PriorityThreadPool("reflexio-embedder", threads=threads)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.empty((len(texts), WIDTH), np.float32)
        batches = _batches(texts)
        left = len(texts)
        while left:
            places, vectors[places] = await self._pool.run(partial(_embed_next, batches), size=left)
            left -= len(places)
        return vectors

    @property
    def runtime(self) -> str:
        """What computes the vectors: "onnxruntime" or "numpy". Loads nothing."""
        return runtime_in_use()

    def forget(self) -> None:
        """Drops the words that the tokeniser has cached."""
        if _tokeniser.cache_info().currsize:
            _tokeniser().forget()

    async def aclose(self) -> None:
        self._pool.close()


def _embed_next(batches: Iterator[Batch]) -> tuple[list[int], NDArray[np.float32]]:
    places, ids = next(batches)
    with _loading:
        model = _model()
    return places, model.vectors(ids)


def _batches(texts: Sequence[str]) -> Iterator[Batch]:
    """Batches of texts of similar length, longest last, so that padding is short. Tokenises a text only when needed."""
    with _loading:
        tokeniser = _tokeniser()
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


@lru_cache(maxsize=1)
def _tokeniser() -> WordPiece:
    return WordPiece((MODEL / "vocab.txt").read_text("utf-8").splitlines(), max_tokens=MAX_TOKENS)


@lru_cache(maxsize=1)
def _model() -> ForwardPass:
    use_one_thread()
    weights = MODEL / "weights.npz"
    if find_spec("onnxruntime"):
        from reflexio.providers.embedding.minilm_onnx import OnnxMiniLM

        try:
            return OnnxMiniLM.load(weights)
        except Exception as error:  # noqa: BLE001  # a library for another system fails in ways of its own
            log.warning("the local embedder uses numpy: onnxruntime does not work here: %s", error)
    return MiniLM.load(weights)


def runtime_in_use() -> str:
    """The runtime of the loaded model; before it is loaded, the one that will be tried first."""
    if _model.cache_info().currsize:
        return _model().runtime
    return "onnxruntime" if find_spec("onnxruntime") else MiniLM.runtime


def use_one_thread() -> None:
    """Stops OpenBLAS from starting threads in this process; does nothing with another BLAS library.

    Its threads wait for each other by spinning. Beside a server that uses the processors too, products of our
    size became ten times slower with two of them than with one, and two callers at once slower still.
    """
    try:
        library = ctypes.CDLL(import_module("numpy._core._multiarray_umath").__file__)
    except OSError:
        return
    for name in OPENBLAS_SETTERS:
        if setter := getattr(library, name, None):
            setter(1)
            return


class PriorityThreadPool:
    """Runs work off the event loop; the smallest request goes first.

    `size` is what the caller still needs, in any unit that all callers share. A piece of work overtakes earlier ones
    of a larger size, but at most `size` others overtake it: a large import yields to every query and still ends.
    """

    def __init__(self, name: str, *, threads: int) -> None:
        self._threads = ThreadPoolExecutor(max_workers=threads, thread_name_prefix=name)
        self._arrivals = count()
        self._waiting: PriorityQueue[tuple[int, int, Future[Any], Callable[[], Any]]] = PriorityQueue()

    async def run(self, work: Callable[[], T], *, size: int) -> T:
        arrival = next(self._arrivals)
        done: Future[T] = Future()
        self._waiting.put((arrival + size, arrival, done, work))
        self._threads.submit(self._run_next)
        return await asyncio.wrap_future(done)

    def close(self) -> None:
        """Stops after the work that is running."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _run_next(self) -> None:
        _, _, done, work = self._waiting.get()
        if not done.set_running_or_notify_cancel():
            return
        try:
            done.set_result(work())
        except BaseException as error:  # noqa: BLE001  # it belongs to the caller of this piece
            done.set_exception(error)
