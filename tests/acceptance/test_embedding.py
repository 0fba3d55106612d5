"""Embedders that fail, hang or talk nonsense, that are changed, and a server that is killed while it embeds."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from reflexio.client.sync import ReflexioClient
from reflexio.models.search import SearchUserPlaybooksResponse
from reflexio.storage.schema import unembedded, vectors
from tests.builders import eventually, on_database
from tests.conftest import StartServer
from tests.endpoint import WIDTH, Endpoint, bag_of_words, embeddings_endpoint

ROWS = 1000


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with embeddings_endpoint() as endpoint:
        yield endpoint


def variables(endpoint: Endpoint, model: str = f"test@{WIDTH}") -> dict[str, str]:
    return {"REFLEXIO_EMBEDDER": f"openai:{model}", "OPENAI_BASE_URL": endpoint.url, "REFLEXIO_LOG_LEVEL": "critical"}


def learned(client: ReflexioClient, *contents: str) -> list[str]:
    return client.add_user_playbook([{"user_id": "ann", "content": content} for content in contents]).ids


def asked(client: ReflexioClient, query: str, **more: Any) -> SearchUserPlaybooksResponse:
    return client.search_user_playbooks(query, user_id="ann", **more)


def said(answer: SearchUserPlaybooksResponse) -> list[str]:
    return [row.content for row in answer.user_playbooks]


def embedded(folder: Path) -> tuple[int, int, set[str]]:
    """Vectors stored, rows that still wait, and the models that made the vectors."""

    async def count(database: Any) -> tuple[int, int, set[str]]:
        def look(connection: Any) -> tuple[int, int, set[str]]:
            made = select(func.count()).select_from(vectors).where(vectors.c.vector.is_not(None))
            waiting = select(func.count()).select_from(unembedded)
            models = connection.execute(select(vectors.c.model).distinct()).scalars()
            return connection.execute(made).scalar_one(), connection.execute(waiting).scalar_one(), set(models)

        found: tuple[int, int, set[str]] = await database.read(look)
        return found

    return on_database(folder, count)


def nan(texts: list[str]) -> bytes:
    row = ["NaN"] * WIDTH
    data = [{"index": n, "embedding": row} for n in range(len(texts))]
    return json.dumps({"data": data}).replace('"NaN"', "NaN").encode()


NONSENSE: dict[str, Any] = {
    "NaN": nan,
    "too short": lambda texts: [[1.0] * (WIDTH - 1) for _ in texts],
    "too long": lambda texts: [[1.0] * (WIDTH + 1) for _ in texts],
    "one missing": lambda texts: [bag_of_words(text) for text in texts[1:]],
    "one too many": lambda texts: [bag_of_words(text) for text in [*texts, "x"]],
    "all zero": lambda texts: [[0.0] * WIDTH for _ in texts],
    "words": lambda texts: [["one"] * WIDTH for _ in texts],
    "huge": lambda texts: [[1e400] * WIDTH for _ in texts],
    "no list": lambda texts: b'{"data": 7}',
    "no JSON": lambda texts: b"<html>busy</html>",
    "nothing": lambda texts: b"",
    "deep": lambda texts: b"[" * 100_000,
}


def answers_by_words(client: ReflexioClient) -> None:
    for mode in ("hybrid", "vector"):
        answer = asked(client, "tea at four", search_mode=mode, explain=True)
        assert said(answer) == ["Serve tea at four"]
        assert (answer.degraded, answer.search_mode_effective) == (True, "fts")
        assert "words" in (answer.msg or "")
    everything = client.search("tea at four", user_id="ann")
    assert (everything.degraded, everything.search_mode_effective) == (True, "fts")
    assert [row.content for row in everything.user_playbooks] == ["Serve tea at four"]
    context = client.get_context("Serve tea at four", user_id="ann")
    assert context.degraded
    only_words = asked(client, "tea at four", search_mode="fts")
    assert (only_words.degraded, only_words.search_mode_effective) == (False, "fts")


def test_nonsense_from_an_endpoint_is_never_stored_and_words_answer(
    start_server: StartServer, endpoint: Endpoint, tmp_path: Path
) -> None:
    server = start_server(**variables(endpoint))
    endpoint.answer = NONSENSE["NaN"]
    with ReflexioClient(url_endpoint=server.url) as client:
        learned(client, "Serve tea at four", "Lock the door")
        for what, answer in NONSENSE.items():
            endpoint.answer = answer
            # Another query each time: an answer that was good would be remembered.
            found = asked(client, f"tea {what}")
            assert (said(found), found.degraded) == (["Serve tea at four"], True), what
        answers_by_words(client)
        assert embedded(tmp_path)[:2] == (0, 2)
        endpoint.answer = lambda texts: [bag_of_words(text) for text in texts]
        eventually(lambda: said(asked(client, "lock door", search_mode="vector", top_k=1)) == ["Lock the door"])
        assert not asked(client, "lock the doors").degraded


def test_an_endpoint_that_fails_or_hangs_leaves_the_words(start_server: StartServer, endpoint: Endpoint) -> None:
    server = start_server(**variables(endpoint))
    with ReflexioClient(url_endpoint=server.url) as client:
        endpoint.status = 500
        learned(client, "Serve tea at four", "Lock the door")
        for status in (400, 401, 404, 429, 500, 503):
            endpoint.status = status
            answers_by_words(client)
        endpoint.status, endpoint.headers = 200, {"Content-Encoding": "gzip"}
        answers_by_words(client)
        endpoint.headers = {}
        endpoint.hold()
        answer = asked(client, "tea")
        assert (said(answer), answer.degraded) == (["Serve tea at four"], True)
        started = time.monotonic()
        answer = asked(client, "tea, another time")
        assert (said(answer), answer.degraded) == (["Serve tea at four"], True)
        assert time.monotonic() - started < 2, "nobody waits behind the one that hangs"
        endpoint.release()
        eventually(lambda: said(asked(client, "lock door", search_mode="vector", top_k=1)) == ["Lock the door"])


def test_rows_without_vectors_are_told(start_server: StartServer, endpoint: Endpoint) -> None:
    """Queries are embedded and rows are not, as with a provider that refuses batches."""
    server = start_server(**variables(endpoint))
    endpoint.refuse = lambda texts: any("tea" in text.lower() for text in texts)
    with ReflexioClient(url_endpoint=server.url) as client:
        learned(client, *(f"Tea number {n}" for n in range(7)))
        for mode, found in (("hybrid", 7), ("vector", 0)):
            answer = asked(client, "number", search_mode=mode)
            assert (len(said(answer)), answer.degraded, answer.search_mode_effective) == (found, True, mode)
            assert "most rows have no vector yet" in (answer.msg or "")
        assert not asked(client, "number", search_mode="fts").degraded
        assert client.search("number", user_id="ann").degraded
        assert client.get_context("number", user_id="ann").degraded
        assert not client.search_user_playbooks("number", user_id="bob").degraded
        assert client.storage_stats("ann").unembedded_count == 7
        endpoint.refuse = lambda texts: any("late" in text for text in texts)
        eventually(lambda: not asked(client, "number").degraded)
        learned(client, "Tea that came late")
        assert not asked(client, "number").degraded, "one row more is no matter"
        eventually(lambda: client.storage_stats("ann").unembedded_count == 1)


def test_no_endpoint_at_all_leaves_the_words(start_server: StartServer) -> None:
    nowhere = {"REFLEXIO_EMBEDDER": "openai:test@64", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    server = start_server(**nowhere, REFLEXIO_LOG_LEVEL="critical")
    with ReflexioClient(url_endpoint=server.url) as client:
        learned(client, "Serve tea at four")
        answers_by_words(client)


def test_one_text_that_the_endpoint_refuses_does_not_hold_up_the_others(
    start_server: StartServer, endpoint: Endpoint
) -> None:
    server = start_server(**variables(endpoint))
    endpoint.refuse = lambda texts: any("poison" in text for text in texts)
    with ReflexioClient(url_endpoint=server.url) as client:
        learned(client, "A poison pill", *(f"Tea number {n}" for n in range(40)))
        eventually(lambda: len(asked(client, "tea", search_mode="vector", top_k=50).user_playbooks) == 40)
        endpoint.refuse = lambda texts: False
        eventually(lambda: len(asked(client, "tea", search_mode="vector", top_k=50).user_playbooks) == 41)


def test_a_restart_rebuilds_the_index(start_server: StartServer, endpoint: Endpoint) -> None:
    server = start_server(**variables(endpoint))
    with ReflexioClient(url_endpoint=server.url) as client:
        ids = learned(client, "Serve tea", "Lock the door", "Water the plants")
        eventually(lambda: len(said(asked(client, "tea", search_mode="vector"))) == 3)
        client.delete_user_playbook(int(ids[0]), wait_for_response=True)
        client.update_user_playbook(int(ids[1]), content="Open the window")
        eventually(lambda: "open the window" in [text.lower() for text in endpoint.seen])
        before = asked(client, "window", explain=True)
    server.stop()
    server.start()
    with ReflexioClient(url_endpoint=server.url) as client:
        eventually(lambda: said(asked(client, "window", search_mode="vector"))[:1] == ["Open the window"])
        assert len(said(asked(client, "window", search_mode="vector"))) == 2
        assert said(asked(client, "window")) == said(before)


@pytest.mark.parametrize("second", ["other@64", "test@32"])
def test_another_embedder_re_embeds_while_search_goes_on(
    start_server: StartServer, endpoint: Endpoint, tmp_path: Path, second: str
) -> None:
    server = start_server(**variables(endpoint))
    contents = ["Serve tea at four", *(f"Rule number {n}" for n in range(80))]
    with ReflexioClient(url_endpoint=server.url) as client:
        learned(client, *contents)
        eventually(lambda: len(asked(client, "tea", search_mode="vector", top_k=100).user_playbooks) == 81)
    server.stop()
    width = int(second.partition("@")[2])
    endpoint.answer = lambda texts: [bag_of_words(text, salt="x", width=width) for text in texts]
    endpoint.refuse = lambda texts: not set(texts).isdisjoint(contents)
    server = start_server(**variables(endpoint, second))
    with ReflexioClient(url_endpoint=server.url) as client:
        # Nothing is embedded anew yet: vectors of the first embedder are not compared with a query of the second.
        by_meaning = asked(client, "tea at four", search_mode="vector", explain=True)
        assert by_meaning.user_playbooks == []
        assert said(asked(client, "tea at four", top_k=1)) == ["Serve tea at four"]
        endpoint.refuse = lambda texts: False
        eventually(lambda: len(asked(client, "tea", search_mode="vector", top_k=100).user_playbooks) == 81)
        best = asked(client, "serve tea at four", search_mode="vector", top_k=1, explain=True)
        assert said(best) == ["Serve tea at four"]
        assert best.explanations is not None
        assert best.explanations[0].vector_score == pytest.approx(1, abs=0.01)
    assert embedded(tmp_path) == (81, 0, {f"openai:{second}"})


def test_killed_while_a_thousand_are_embedded_all_are_found_and_none_twice(
    start_server: StartServer, endpoint: Endpoint, tmp_path: Path
) -> None:
    server = start_server(**variables(endpoint))
    contents = [f"Rule w{n} x{n * 7}" for n in range(ROWS)]
    with ReflexioClient(url_endpoint=server.url) as client:
        learned(client, *contents)
    for part in (0.1, 0.4, 0.8):
        eventually(lambda part=part: len(endpoint.seen) >= part * ROWS)  # type: ignore[misc]
        server.kill()
        assert embedded(tmp_path)[0] < ROWS
        server.start()
    with ReflexioClient(url_endpoint=server.url) as client:

        def found() -> list[str]:
            return said(asked(client, "rule", search_mode="vector", top_k=2000))

        eventually(lambda: len(found()) == ROWS, seconds=60)
        assert sorted(found()) == sorted(contents)
    assert embedded(tmp_path) == (ROWS, 0, {f"openai:test@{WIDTH}"})
