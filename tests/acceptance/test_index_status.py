"""Health and metrics say how far search is behind, to everybody and without naming anybody."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from reflexio.client.sync import ReflexioClient
from tests.builders import eventually
from tests.conftest import Running, StartServer
from tests.endpoint import WIDTH, Endpoint, embeddings_endpoint

KEY = "a-key-of-the-operator"
SAMPLE = re.compile(r"reflexio_(\w+)(\{[^}]*\})? ([\d.]+)")


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with embeddings_endpoint() as endpoint:
        yield endpoint


def metrics(url: str) -> dict[str, float]:
    response = httpx.get(f"{url}/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    samples: dict[str, float] = {}
    kinds: dict[str, str] = {}
    for line in response.text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kinds[name.removeprefix("reflexio_")] = line.split()
        elif not line.startswith("# HELP "):
            match = SAMPLE.fullmatch(line)
            assert match, line
            samples[match[1]] = float(match[3])
    histograms = {name for name, kind in kinds.items() if kind == "histogram"}
    parts = {f"{name}_{part}" for name in histograms for part in ("bucket", "sum", "count")}
    assert (kinds.keys() - histograms) | parts == samples.keys()
    assert all(name.endswith("_total") == (kind == "counter") for name, kind in kinds.items())
    return samples


def health(url: str) -> dict[str, dict[str, Any]]:
    response: dict[str, dict[str, Any]] = httpx.get(f"{url}/health").json()
    return response


def test_rows_that_wait_are_counted_with_their_age_and_without_their_owner(
    start_server: StartServer, endpoint: Endpoint
) -> None:
    endpoint.status = 503
    server = start_server(
        REFLEXIO_EMBEDDER=f"openai:test@{WIDTH}",
        OPENAI_BASE_URL=endpoint.url,
        REFLEXIO_API_KEY=KEY,
        REFLEXIO_LOG_LEVEL="critical",
    )
    with ReflexioClient(url_endpoint=server.url, api_key=KEY) as client:
        client.publish_interaction("ann", [{"role": "User", "content": "Tea, please."}] * 3)
        client.add_user_playbook([{"user_id": "ann", "content": "Serve tea"}])
    eventually(lambda: metrics(server.url)["turns_without_vector"] == 3)
    eventually(lambda: health(server.url)["backlog"]["oldest_without_vector_seconds"] >= 1)
    assert health(server.url)["backlog"]["learnings_without_vector"] == 1
    eventually(lambda: metrics(server.url)["embedding_failures_total"] >= 1)
    assert metrics(server.url)["turns_indexed_total"] == 3
    shown = httpx.get(f"{server.url}/metrics").text + httpx.get(f"{server.url}/health").text
    assert "ann" not in shown.replace("tea", "")
    endpoint.status = 200
    eventually(lambda: metrics(server.url)["rows_embedded_total"] >= 4, seconds=60)
    eventually(lambda: set(health(server.url)["backlog"].values()) == {0})


def test_health_says_what_computes_the_vectors(server: Running) -> None:
    embedder = health(server.url)["embedder"]
    assert embedder["name"] == "local:all-MiniLM-L6-v2"
    assert embedder["runtime"] in {"onnxruntime", "numpy"}
