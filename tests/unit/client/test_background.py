"""Calls that nobody waits for are made before the program ends, and what fails is told."""

import asyncio
import logging
import subprocess
import sys
import threading

import httpx
import pytest

from reflexio import AsyncReflexioClient, errors
from reflexio.client.sync import ReflexioClient
from tests.conftest import Org


class Recording(httpx.MockTransport):
    def __init__(self, status: int = 200) -> None:
        self.paths: list[str] = []
        self.threads: set[int] = set()
        self.go = threading.Event()
        self.go.set()
        self._status = status
        super().__init__(self._answer)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        assert self.go.wait(10)
        self.threads.add(threading.get_ident())
        self.paths.append(f"{request.url.path} {request.content.decode()}")
        return httpx.Response(self._status, json={"success": True, "detail": "no such thing"})


def test_a_call_returns_at_once_and_flush_waits_for_it() -> None:
    transport = Recording()
    client = ReflexioClient(transport=transport)
    transport.go.clear()
    assert client.delete_session("s") is None
    assert transport.paths == []
    transport.go.set()
    client.flush()
    assert len(transport.paths) == 1
    assert threading.get_ident() not in transport.threads


def test_calls_keep_their_order_and_closing_finishes_them() -> None:
    transport = Recording()
    with ReflexioClient(transport=transport) as client:
        for number in range(20):
            client.delete_request(f"r{number}")
    assert [path.partition(" ")[2] for path in transport.paths] == [f'{{"request_id":"r{n}"}}' for n in range(20)]


def test_an_error_reaches_the_callback() -> None:
    heard: list[Exception] = []
    with ReflexioClient(transport=Recording(404), on_background_error=heard.append) as client:
        client.delete_request("r")
    assert [type(each) for each in heard] == [errors.NotFound]


def test_an_error_without_a_callback_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "reflexio.client"), ReflexioClient(transport=Recording(404)) as client:
        client.delete_request("r")
    assert "a background call failed" in caplog.text
    assert "/api/delete_request" in caplog.text


def test_a_callback_that_fails_is_logged_and_the_next_call_is_made(caplog: pytest.LogCaptureFixture) -> None:
    def bad(_: Exception) -> None:
        raise ZeroDivisionError

    transport = Recording(404)
    with ReflexioClient(transport=transport, on_background_error=bad) as client:
        client.delete_request("a")
        client.delete_request("b")
    assert len(transport.paths) == 2
    assert "the error callback failed" in caplog.text


async def test_asynchronous_calls_keep_their_order_and_closing_finishes_them() -> None:
    transport = Recording()
    async with AsyncReflexioClient(transport=transport) as client:
        for number in range(20):
            assert await client.delete_request(f"r{number}") is None
        assert transport.paths == []
    assert [path.partition(" ")[2] for path in transport.paths] == [f'{{"request_id":"r{n}"}}' for n in range(20)]


async def test_an_asynchronous_error_reaches_the_callback() -> None:
    heard: list[Exception] = []
    async with AsyncReflexioClient(transport=Recording(404), on_background_error=heard.append) as client:
        await client.delete_request("r")
    assert [type(each) for each in heard] == [errors.NotFound]


PLAIN = """
from reflexio import ReflexioClient
ReflexioClient({key!r}, {url!r}).delete_session({session!r})
"""
ASYNCHRONOUS = """
import asyncio
from reflexio import AsyncReflexioClient

async def main():
    client = AsyncReflexioClient({key!r}, {url!r})
    await client.delete_session("{session}")

asyncio.run(main())
"""


@pytest.mark.parametrize("program", [PLAIN, ASYNCHRONOUS], ids=["plain", "asynchronous"])
@pytest.mark.slow
def test_a_program_that_ends_right_away_has_still_deleted(org: Org, client: ReflexioClient, program: str) -> None:
    client.publish_interaction("ann", [{"content": "x"}], session_id="gone")
    client.publish_interaction("ann", [{"content": "y"}], session_id="kept")
    code = program.format(key=org.token, url=org.url, session="gone")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""
    assert [each.session_id for each in client.get_requests().sessions] == ["kept"]


async def test_many_tasks_may_share_a_client(org: Org) -> None:
    async with AsyncReflexioClient(org.token, org.url) as client:
        await asyncio.gather(*(client.publish_interaction(f"u{n}", [{"content": "x"}]) for n in range(50)))
        assert len((await client.get_all_interactions()).interactions) == 50
