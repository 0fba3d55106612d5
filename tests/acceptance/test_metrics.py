"""Metrics and logs of servers and workers, on SQLite and PostgreSQL."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from reflexio.client.sync import ReflexioClient
from reflexio.server.latency import ROUTE_CLASSES
from reflexio.server.metrics import METRICS
from reflexio.server.process import free_port
from tests.builders import eventually
from tests.conftest import StartServer

SAMPLE = re.compile(r"reflexio_(\w+)((?:\{[^}]*\})?) ([\d.]+)")
TALK = [{"role": "User", "content": "My name is Ann and I am allergic to peanuts."}]


def samples(url: str) -> dict[str, float]:
    """Values by name with labels; empty while nobody listens."""
    try:
        text = httpx.get(f"{url}/metrics").text
    except httpx.TransportError:
        return {}
    return {match[1] + match[2]: float(match[3]) for match in SAMPLE.finditer(text)}


@contextmanager
def running_worker(folder: Path, **variables: str) -> Iterator[str]:
    port = free_port()
    clean = {name: value for name, value in os.environ.items() if not name.startswith("REFLEXIO_")}
    environment = {**clean, "REFLEXIO_DATA": str(folder), "REFLEXIO_WORKER_PORT": str(port), **variables}
    process = subprocess.Popen([sys.executable, "-m", "reflexio", "worker"], env=environment)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        assert process.wait(20) == 0


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_server_and_worker_show_what_was_learned(
    database: str, start_server: StartServer, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    address = request.getfixturevalue("empty_postgres") if database == "postgresql" else ""
    server = start_server(REFLEXIO_DATABASE=address, REFLEXIO_WORKER_PORT=str(port := free_port()))
    beside = f"http://127.0.0.1:{port}"
    with ReflexioClient(url_endpoint=server.url) as client:
        client.publish_interaction("ann", TALK, force_extraction=True)
        client.get_profiles("ann")
    eventually(lambda: samples(server.url)["windows_learned_total"] == 1, seconds=30)
    shown = samples(server.url)
    assert shown["worker_alive"] == shown["database_up"] == 1
    assert shown["jobs_waiting"] == shown["stalled_organisations"] == shown["model_input_tokens_total"] == 0
    assert shown['request_duration_seconds_count{route="publish"}'] == 1
    assert shown['request_duration_seconds_bucket{route="publish",le="+Inf"}'] == 1
    assert 0 < shown['request_duration_seconds_sum{route="publish"}'] < 10
    assert shown['requests_total{route="read",status="2xx"}'] == 1
    assert shown["process_leads"] == 0
    eventually(lambda: samples(beside)["windows_learned_total"] == 1, seconds=30)
    assert samples(beside)["process_leads"] == 1
    assert "requests_in_progress" not in samples(beside)
    assert httpx.get(f"{beside}/health").json() == {"status": "ok", "leads": True}
    assert httpx.get(f"{beside}/health/ready").json() == {"status": "ready"}
    assert httpx.get(f"{beside}/api/get_config").status_code == 404
    names = {name.partition("{")[0] for name in shown}
    known = METRICS.keys() | {f"request_duration_seconds_{part}" for part in ("bucket", "sum", "count")}
    assert known - names <= {"embedding_seconds_left", "request_duration_seconds"}
    assert names <= known
    assert "ann" not in httpx.get(f"{server.url}/metrics").text
    classes = {label for name in shown for label in re.findall(r'route="(\w+)"', name)}
    assert classes == set(ROUTE_CLASSES)


@pytest.mark.slow
def test_of_two_workers_one_leads_and_the_other_takes_over(empty_postgres: str, tmp_path: Path) -> None:
    named = {"REFLEXIO_DATABASE": empty_postgres}
    with running_worker(tmp_path, **named) as second:
        with running_worker(tmp_path, **named) as first:
            eventually(lambda: bool(samples(first) and samples(second)), seconds=30)
            eventually(lambda: leaders(first, second) == 1, seconds=30)
        eventually(lambda: leaders(second) == 1, seconds=30)


def leaders(*urls: str) -> float:
    return sum(samples(url)["process_leads"] for url in urls)


@pytest.mark.slow
def test_a_worker_on_a_taken_port_ends_with_one_sentence(tmp_path: Path, open_server: object) -> None:
    taken = re.search(r":(\d+)", str(getattr(open_server, "url", "")).removeprefix("http:"))
    assert taken
    environment = {**os.environ, "REFLEXIO_WORKER_PORT": taken[1], "REFLEXIO_DATA": str(tmp_path)}
    command = [sys.executable, "-m", "reflexio", "worker"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert f"Cannot listen on 127.0.0.1:{taken[1]}; choose another REFLEXIO_WORKER_PORT." in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_json_logs_are_one_object_a_line_with_the_request_id(tmp_path: Path) -> None:
    port = free_port()
    named = {"REFLEXIO_LOG_FORMAT": "json", "REFLEXIO_LOG_LEVEL": "debug", "REFLEXIO_DATA": str(tmp_path)}
    command = [sys.executable, "-m", "reflexio", "serve", "--port", str(port), "--no-worker"]
    process = subprocess.Popen(command, env={**os.environ, **named}, stderr=subprocess.PIPE, text=True)
    try:
        eventually(lambda: bool(samples(f"http://127.0.0.1:{port}")), seconds=30)
        httpx.get(f"http://127.0.0.1:{port}/api/whoami", headers={"X-Request-ID": "mine-7"})
    finally:
        process.terminate()
        _, errors = process.communicate(timeout=30)
    entries = [json.loads(line) for line in errors.splitlines()]
    assert all({"time", "level", "logger", "message"} <= entry.keys() for entry in entries)
    assert any(entry.get("request_id") == "mine-7" and "/api/whoami" in entry["message"] for entry in entries)
    assert any("Uvicorn running" in entry["message"] for entry in entries)
