"""Durable work: what the engine adds to the time of the work itself."""

import asyncio
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from reflexio.engine.job_runner import DurableWork
from reflexio.ports.work import Json, Steps
from reflexio.storage.sqlite import open_sqlite
from tests.bench.report import Figure, milliseconds

ONE_BY_ONE, TOGETHER, LANES, IDLE = 60, 400, 64, 10.0


def work() -> list[Figure]:
    """Measured in a process of its own, so that import and memory are seen."""
    measured = subprocess.run([sys.executable, "-m", "tests.bench.work"], check=True, capture_output=True)
    return [Figure(**figure) for figure in json.loads(measured.stdout)]


class Stopwatch:
    """A workflow of three steps that do nothing, and when the first of them began."""

    def __init__(self) -> None:
        self.first: dict[str, float] = {}

    async def workflow(self, steps: Steps, data: Json) -> Json:
        async def act() -> Json:
            self.first.setdefault(data["key"], time.perf_counter())
            return {}

        for name in ("one", "two", "three"):
            await steps(name, act)
        return {}


async def measure(folder: Path) -> list[dict[str, object]]:
    watch, database = Stopwatch(), open_sqlite(folder / "data.db")
    engine = DurableWork(database.journal, changes=database.changes)
    engine.register("three", watch.workflow)
    memory, began = _memory(), time.perf_counter()
    await engine.start()
    started, loaded = time.perf_counter() - began, _memory() - memory
    first, whole = await _one_by_one(engine, watch)
    rate = await _together(engine)
    threads = threading.active_count()
    idle = await _idle()
    began = time.perf_counter()
    await engine.close()
    await database.close()
    return [
        {"name": "start", "value": started, "unit": "s"},
        {"name": "memory of the engine", "value": loaded, "unit": "MB"},
        {"name": "threads", "value": threads, "unit": ""},
        {"name": "asked for until the first step, p50", "value": first[0], "unit": "ms"},
        {"name": "asked for until the first step, p95", "value": first[1], "unit": "ms"},
        {"name": "three steps and back, p50", "value": whole[0], "unit": "ms", "wanted": 60},
        {"name": "three steps and back, p95", "value": whole[1], "unit": "ms"},
        {"name": "jobs of three steps, 8 at once", "value": rate, "unit": "/s", "wanted": 15, "more_is_better": True},
        {"name": "processor while idle", "value": idle, "unit": "% of a core", "wanted": 1},
        {"name": "close", "value": time.perf_counter() - began, "unit": "s", "wanted": 2},
    ]


async def _one_by_one(engine: DurableWork, watch: Stopwatch) -> tuple[tuple[float, float], tuple[float, float]]:
    first, whole = list[float](), list[float]()
    for number in range(ONE_BY_ONE):
        key, began = f"single {number}", time.perf_counter()
        await engine.enqueue("three", key, {"key": key}, lane="one")
        await engine.wait(key)
        first.append(watch.first[key] - began)
        whole.append(time.perf_counter() - began)
    return milliseconds(first), milliseconds(whole)


async def _together(engine: DurableWork) -> float:
    keys, began = [f"many {number}" for number in range(TOGETHER)], time.perf_counter()
    for number, key in enumerate(keys):
        await engine.enqueue("three", key, {"key": key}, lane=f"{number % LANES}")
    await asyncio.gather(*(engine.wait(key) for key in keys))
    return TOGETHER / (time.perf_counter() - began)


async def _idle() -> float:
    began = time.process_time()
    await asyncio.sleep(IDLE)
    return (time.process_time() - began) / IDLE * 100


def _memory() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        print(json.dumps(asyncio.run(measure(Path(made)))))
