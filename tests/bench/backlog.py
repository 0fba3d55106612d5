"""Publishing at full pace: until a turn is found by words, and the age of the oldest row without a vector."""

import statistics
import tempfile
import threading
import time
from pathlib import Path
from uuid import uuid4

import httpx

from reflexio import ReflexioClient
from reflexio.server.process import running_server
from tests.bench.foundation import TURNS
from tests.bench.load import post
from tests.bench.report import Figure, milliseconds

CLIENTS, SECONDS, ROUND = 8, 30, 100


def backlog() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder, running_server(Path(folder)) as url:
        done = threading.Event()
        waits: list[float] = []
        ages: list[dict[str, float]] = []
        watchers = [
            threading.Thread(target=_probe, args=(url, done, waits)),
            threading.Thread(target=_watch, args=(url, done, ages)),
        ]
        for watcher in watchers:
            watcher.start()
        taken, rate = _publish(url)
        last = _backlog(url)
        done.set()
        for watcher in watchers:
            watcher.join()
        began = time.perf_counter()
        while _backlog(url)["turns_not_indexed"]:
            time.sleep(0.1)
        indexed = time.perf_counter() - began
        time.sleep(2)
        left = _backlog(url)["turns_without_vector"]
        began = time.perf_counter()
        time.sleep(10)
        embedded = (left - _backlog(url)["turns_without_vector"]) / (time.perf_counter() - began)
    p50, p95 = milliseconds(taken)
    word_ages = [sample["oldest_not_indexed_seconds"] for sample in ages]
    return [
        Figure("8 clients at full pace: publish 4 turns, p50", p50, "ms"),
        Figure("8 clients at full pace: publish 4 turns, p95", p95, "ms"),
        Figure("8 clients at full pace: rate", rate, "/s", more_is_better=True),
        Figure("until a turn is found by words, median", statistics.median(waits), "s"),
        Figure("until a turn is found by words, longest", max(waits), "s", 5),
        Figure("oldest turn that is not indexed, greatest age", max(word_ages), "s", 5),
        Figure("turns that are not indexed at the end", last["turns_not_indexed"], ""),
        Figure("until all turns are indexed after the end", indexed, "s", 5),
        Figure("turns without a vector at the end", last["turns_without_vector"], ""),
        Figure("oldest row without a vector at the end", last["oldest_without_vector_seconds"], "s"),
        Figure("turns embedded in the quiet afterwards", embedded, "/s", more_is_better=True),
    ]


def _publish(url: str) -> tuple[list[float], float]:
    def body(client: int, number: int) -> dict[str, object]:
        return {"user_id": f"user-{client}-{number % 10}", "interaction_data_list": TURNS}

    taken: list[float] = []
    began = time.perf_counter()
    while time.perf_counter() - began < SECONDS:
        load = post(url, "/api/publish_interaction", body, clients=CLIENTS, each=ROUND)
        assert not load.failed
        taken += load.taken
    return taken, len(taken) / (time.perf_counter() - began)


def _probe(url: str, done: threading.Event, waits: list[float]) -> None:
    """Publishes a word that nobody else says, and searches until it is found."""
    with ReflexioClient(url_endpoint=url) as client:
        while not done.is_set():
            word = f"word{uuid4().hex[:12]}"
            client.publish_interaction("prober", [{"role": "User", "content": f"Remember {word}."}])
            began = time.perf_counter()
            while not client.search_interactions("prober", word, search_mode="fts").interactions:
                if time.perf_counter() - began > 120:
                    break
                time.sleep(0.05)
            waits.append(time.perf_counter() - began)
            done.wait(0.5)


def _watch(url: str, done: threading.Event, ages: list[dict[str, float]]) -> None:
    while not done.is_set():
        ages.append(_backlog(url))
        done.wait(0.5)


def _backlog(url: str) -> dict[str, float]:
    values: dict[str, float] = httpx.get(f"{url}/health", trust_env=False).json()["backlog"]
    return values
