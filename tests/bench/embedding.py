"""The embedder in the package: loading, queries, imports, and queries beside an import."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import TypeVar

from reflexio.ports.embedding import Embedder
from tests.bench.report import Figure, milliseconds

LOCOMO = Path("../shared/data/retrieval/locomo.jsonl")
T = TypeVar("T")
TURNS, QUERIES, IMPORT = 600, 150, 5_000


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
    ]


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
