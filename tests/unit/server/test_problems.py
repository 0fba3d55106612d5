"""Errors become answers that say who must act, and never how the server looks inside."""

from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from reflexio import errors
from reflexio.server.problems import as_problem, status_of
from tests.builders import problem


class Broken:
    """A store whose every use fails."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.org_id = "default"

    async def read(self, _: Any) -> Any:
        raise self.error

    async def write(self, _: Any) -> Any:
        raise self.error


def break_database(app: FastAPI, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    monkeypatch.setattr(app.state.reflexio.database, "of", lambda _: Broken(error), raising=True)


async def test_a_mistake_of_the_server_tells_nothing_but_where_to_look(
    app: FastAPI, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    break_database(app, monkeypatch, RuntimeError("the secret reason"))
    answer = await http.get("/api/get_config", headers={"X-Request-ID": "trace-1"})
    assert "server's log" in problem(answer, 500)
    assert answer.headers["x-request-id"] == "trace-1"
    assert "secret" not in answer.text
    assert "RuntimeError" not in answer.text
    assert "the secret reason" in caplog.text


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (errors.StorageFull(path="/data"), 507, "free some space"),
        (errors.StorageCorrupt(path="/data"), 503, "restore a backup"),
        (errors.StorageUnavailable(), 503, "Try again"),
        (errors.Conflict("taken"), 409, "taken"),
        (errors.NotFound(what="request", id="x"), 404, "no request 'x'"),
    ],
)
async def test_our_errors_have_their_status(
    app: FastAPI,
    http: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
    *,
    error: errors.ReflexioError,
    status: int,
    words: str,
) -> None:
    break_database(app, monkeypatch, error)
    assert words in problem(await http.get("/api/get_config"), status)


def test_every_error_of_a_caller_is_a_4xx() -> None:
    for kind in (errors.InvalidRequest, errors.TooLarge, errors.NotAuthorised, errors.Conflict):
        assert 400 <= status_of(kind()) < 500
    assert status_of(errors.ReflexioError()) == 500


@pytest.mark.parametrize(("seconds", "header"), [(0.2, "1"), (1.0, "1"), (1.2, "2"), (59.5, "60")])
def test_retry_after_is_never_too_early(seconds: float, header: str) -> None:
    assert as_problem(errors.RateLimited(retry_after=seconds), "").headers["retry-after"] == header


async def test_not_ready_when_the_database_is_gone(
    app: FastAPI, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gone() -> None:
        raise errors.StorageUnavailable

    monkeypatch.setattr(app.state.reflexio.database, "ping", gone)
    problem(await http.get("/health/ready"), 503)
    assert (await http.get("/health")).is_success
    assert (await http.get("/health/live")).is_success
