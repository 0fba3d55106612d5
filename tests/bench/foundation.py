"""Start-up, publishing and reading, with the server on the same machine."""

import asyncio
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx

from reflexio import ReflexioClient
from reflexio.server.process import free_port, running_server
from reflexio.storage.sqlite import open_sqlite
from tests.bench.load import Load, post
from tests.bench.report import Figure, milliseconds

TURNS = [
    {"role": "User", "content": "My invoice for March is wrong, it lists two seats and we have only one."},
    {"role": "Agent", "content": "I see. I have corrected it and sent you a new one."},
    {"role": "User", "content": "It still says two. Please look at the contract first, next time."},
    {"role": "Agent", "content": "You are right, the contract says one seat. The new invoice is on its way."},
]


def start_up() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        first, _ = _start(Path(folder))
        again = [_start(Path(folder)) for _ in range(3)]
    imports = [_seconds([sys.executable, "-c", "import reflexio"]) for _ in range(5)]
    bare = [_seconds([sys.executable, "-c", "pass"]) for _ in range(5)]
    return [
        Figure("start to healthy, new database", first, "s", 1.5, baseline="9 s"),
        Figure("start to healthy, later", min(each[0] for each in again), "s", 1.5, baseline="9 s"),
        Figure("memory before first use", min(each[1] for each in again), "MB", 130, baseline="292 MB"),
        Figure("import reflexio", max(0.0, min(imports) - min(bare)), "s", 0.15),
    ]


def _seconds(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - began


def _start(folder: Path) -> tuple[float, float]:
    port = free_port()
    command = [sys.executable, "-m", "reflexio", "serve", "--port", str(port), "--data", str(folder)]
    began = time.perf_counter()
    process = subprocess.Popen(command, env={**os.environ, "REFLEXIO_LOG_LEVEL": "warning"})
    try:
        while True:
            try:
                httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False).raise_for_status()
                break
            except httpx.TransportError:
                time.sleep(0.01)
        return time.perf_counter() - began, _memory(process.pid)
    finally:
        process.terminate()
        process.wait()


def _memory(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def _publish(url: str, clients: int, each: int) -> Load:
    def body(client: int, number: int) -> dict[str, object]:
        return {"user_id": f"user-{client}-{number % 10}", "interaction_data_list": TURNS}

    return post(url, "/api/publish_interaction", body, clients=clients, each=each)


def publishing() -> list[Figure]:
    figures: list[Figure] = []
    slow = {1: "52 ms", 8: "440 ms, 17/s", 32: "658 ms, p95 11.8 s"}
    with tempfile.TemporaryDirectory() as folder, running_server(Path(folder)) as url:
        _publish(url, 1, 50)
        for clients, each in ((1, 500), (8, 250), (32, 80)):
            load = _publish(url, clients, each)
            p50, p95 = milliseconds(load.taken)
            name = f"publish 4 turns, {clients} client(s)"
            figures.append(Figure(f"{name}, p50", p50, "ms", 4 if clients == 1 else None, baseline=slow[clients]))
            if clients > 1:
                figures.append(Figure(f"{name}, p95", p95, "ms", 60))
                figures.append(Figure(f"{name}, rate", load.rate, "/s", 500, more_is_better=True))
            figures.append(Figure(f"{name}, failed", load.failed, "", 0))
        p50, _ = milliseconds(_publish_through_our_client(url, 200))
        figures.append(Figure("publish 4 turns through ReflexioClient, p50", p50, "ms"))
    return figures


def _publish_through_our_client(url: str, count: int) -> list[float]:
    taken = []
    with ReflexioClient(url_endpoint=url, retries=0) as client:
        for number in range(count):
            began = time.perf_counter()
            client.publish_interaction(f"client-{number % 10}", TURNS)
            taken.append(time.perf_counter() - began)
    return taken


def fill(path: Path, rows: int) -> None:
    """A million turns written as the server would store them, without the server's time."""
    asyncio.run(open_sqlite(path).close())
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA synchronous=OFF")
    turns = (
        ("default", f"user-{number % 1000}", f"request-{number // 4}", 1_700_000_000 + number, "User", f"Turn {number}")
        for number in range(rows)
    )
    connection.executemany(
        "INSERT INTO interactions (org_id, user_id, request_id, created_at, role, content, user_action) "
        "VALUES (?, ?, ?, ?, ?, ?, 'none')",
        turns,
    )
    connection.commit()
    connection.close()


def _newest_of_a_user(_client: int, number: int) -> dict[str, object]:
    return {"user_id": f"user-{number % 1000}", "top_k": 100}


def reading() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder) / "reflexio.db", 1_000_000)
        with running_server(Path(folder)) as url:
            with ReflexioClient(url_endpoint=url) as client:
                assert len(client.get_interactions("user-1", top_k=100).interactions) == 100
            load = post(url, "/api/get_interactions", _newest_of_a_user, clients=1, each=220)
    assert not load.failed
    p50, p95 = milliseconds(load.taken[20:])
    return [
        Figure("get_interactions, 100 rows of 1,000,000, p50", p50, "ms", 8),
        Figure("get_interactions, 100 rows of 1,000,000, p95", p95, "ms"),
    ]
