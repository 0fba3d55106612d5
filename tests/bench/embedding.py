"""The embedder in the package: loading, queries, imports, and its two runtimes compared."""

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, TypeVar

from reflexio.ports.embedding import Embedder
from tests.bench.report import Figure, milliseconds

if TYPE_CHECKING:
    from reflexio.providers.embedding.local import ForwardPass

LOCOMO = Path("../shared/data/retrieval/locomo.jsonl")
T = TypeVar("T")
M = TypeVar("M")
TURNS, QUERIES, IMPORT, ROUNDS = 600, 150, 5_000, 80


def embedding() -> list[Figure]:
    """Measured in a process of its own, so that loading and memory are seen."""
    if not LOCOMO.exists():
        print(f"{LOCOMO} is not here: embedding is not measured.")
        return []
    measured = subprocess.run([sys.executable, "-m", "tests.bench.embedding"], check=True, capture_output=True)
    return [Figure(**figure) for figure in json.loads(measured.stdout)]


async def measure() -> list[dict[str, object]]:
    turns, questions = _texts()
    imported, embedder = await _timed(_embedder())
    before = _memory()
    first, _ = await _timed(embedder.embed(["first"]))
    loaded = _memory() - before
    idle = await _ask(embedder, questions[:QUERIES])
    one, _ = await _timed(embedder.embed(turns[:TURNS]))
    halves = (turns[: TURNS // 2], turns[TURNS // 2 : TURNS])
    two, _ = await _timed(asyncio.gather(*(embedder.embed(half) for half in halves)))
    background = asyncio.create_task(embedder.embed((turns * 2)[:IMPORT]))
    beside = await _ask(embedder, questions[QUERIES : 2 * QUERIES])
    background.cancel()
    return [
        {"name": "import of the embedder, numpy included", "value": imported, "unit": "s"},
        {"name": "first call, loading included", "value": first, "unit": "s", "wanted": 0.5},
        {"name": "memory of the loaded model", "value": loaded, "unit": "MB", "wanted": 120},
        {"name": "query, idle, p50", "value": idle[0], "unit": "ms", "wanted": 11},
        {"name": "query, idle, p95", "value": idle[1], "unit": "ms"},
        {"name": "query beside an import, p50", "value": beside[0], "unit": "ms"},
        {"name": "query beside an import, p95", "value": beside[1], "unit": "ms"},
        {"name": "turns embedded, one call", "value": TURNS / one, "unit": "/s", "wanted": 69, "more_is_better": True},
        {
            "name": "turns embedded, two calls",
            "value": TURNS / two,
            "unit": "/s",
            "wanted": 113,
            "more_is_better": True,
        },
        *_both_runtimes(turns[:ROUNDS], questions[:ROUNDS]),
    ]


def _both_runtimes(turns: list[str], questions: list[str]) -> list[dict[str, object]]:
    """Time in onnxruntime against numpy: medians of pairs of calls, one right after the other."""
    import numpy as np

    from reflexio.providers.embedding.local import _tokeniser
    from reflexio.providers.embedding.minilm import MiniLM

    if not find_spec("onnxruntime"):
        return []
    from reflexio.providers.embedding.minilm_onnx import OnnxMiniLM

    before = _memory()
    plain, plain_seconds = _loaded(MiniLM.load)
    plain_memory, before = _memory() - before, _memory()
    fast, fast_seconds = _loaded(OnnxMiniLM.load)
    fast_memory = _memory() - before
    ids = _tokeniser().ids
    queries, sentences = [[ids(text)] for text in questions], [[ids(text)] for text in turns]
    many = [[ids(text) for text in questions[at : at + 8]] for at in range(0, len(questions), 8)] * 2
    apart = max(float(np.abs(plain.vectors(batch) - fast.vectors(batch)).max()) for batch in [*queries, *sentences])

    def ratio(
        name: str, batches: list[list[list[int]]], clock: Callable[[], float], wanted: float
    ) -> dict[str, object]:
        pairs = [(_seconds(plain, batch, clock), _seconds(fast, batch, clock)) for batch in batches]
        numpy_ms, onnx_ms = (statistics.median(seconds) * 1000 for seconds in zip(*pairs, strict=True))
        value = statistics.median(onnx / plain for plain, onnx in pairs)
        baseline = f"numpy {numpy_ms:.1f} ms, onnxruntime {onnx_ms:.1f} ms"
        return {"name": name, "value": value, "unit": "of numpy", "wanted": wanted, "baseline": baseline}

    figures = [
        ratio("onnxruntime: processor time of a query", queries, time.thread_time, 0.5),
        ratio("onnxruntime: processor time of a turn", sentences, time.thread_time, 0.67),
        ratio("onnxruntime: processor time of eight queries in a batch", many, time.thread_time, 0.67),
    ]
    with _busy_thread():
        figures.append(ratio("onnxruntime: query beside a busy thread", queries, time.perf_counter, 0.33))
    return [
        *figures,
        {"name": "onnxruntime: largest difference of a number", "value": apart, "unit": "", "wanted": 1e-4},
        _beside("onnxruntime: loading", fast_seconds, "s", plain_seconds),
        _beside("onnxruntime: memory of the model", fast_memory, "MB", plain_memory),
    ]


def _beside(name: str, value: float, unit: str, numpy_value: float) -> dict[str, object]:
    return {"name": name, "value": value, "unit": unit, "baseline": f"numpy {numpy_value:.3g} {unit}"}


def _loaded(model: Callable[[Path], M]) -> tuple[M, float]:
    from reflexio.providers.embedding.local import MODEL

    began = time.perf_counter()
    return model(MODEL / "weights.npz"), time.perf_counter() - began


def _seconds(model: "ForwardPass", batch: list[list[int]], clock: Callable[[], float]) -> float:
    began = clock()
    model.vectors(batch)
    return clock() - began


@contextmanager
def _busy_thread() -> Iterator[None]:
    """A thread that runs Python code all the time."""
    done = Event()

    def count() -> None:
        number = 0
        while not done.is_set():
            number += 1

    thread = Thread(target=count, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


async def _embedder() -> Embedder:
    """Imported here: that is measured too."""
    from reflexio.providers.embedding.local import LocalEmbedder

    return LocalEmbedder()


async def _timed(work: Awaitable[T]) -> tuple[float, T]:
    began = time.perf_counter()
    answer = await work
    return time.perf_counter() - began, answer


async def _ask(embedder: Embedder, questions: list[str]) -> tuple[float, float]:
    taken = []
    for question in questions:
        taken.append((await _timed(embedder.embed([question])))[0])
        await asyncio.sleep(0.02)
    return milliseconds(taken)


def _texts() -> tuple[list[str], list[str]]:
    talks = [json.loads(line) for line in LOCOMO.read_text("utf-8").splitlines()]
    turns = [turn["text"] for talk in talks for turn in talk["turns"]]
    return turns, [question["question"] for talk in talks for question in talk["questions"]]


def _memory() -> float:
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) / 1000 for line in status.splitlines() if line.startswith("VmRSS"))


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure())))
