"""Calls that nobody waits for are made before the program ends, and what fails is told."""

import asyncio
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from reflexio import AsyncReflexioClient, errors
from reflexio.client.background import AsyncBackground
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


class Calls:
    """Background calls that note their names; those in `held` never come back."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.held: set[str] = set()

    def named(self, name: str) -> Callable[[], Any]:
        async def call() -> None:
            if name in self.held:
                self.held.discard(name)
                await asyncio.Event().wait()
            await asyncio.sleep(0)
            self.made.append(name)

        return call


def background() -> tuple[AsyncBackground, Calls, list[Exception]]:
    heard: list[Exception] = []
    return AsyncBackground(heard.append), Calls(), heard


async def start(queue: AsyncBackground, calls: Calls, *names: str) -> None:
    for name in names:
        queue.start(calls.named(name))


@pytest.mark.parametrize("held", [set(), {"a"}], ids=["free", "cut off"])
def test_two_loops_one_after_the_other_make_all_calls_in_order(held: set[str]) -> None:
    queue, calls, heard = background()
    calls.held = held

    async def second() -> None:
        await start(queue, calls, "c", "d")
        await queue.flush()

    asyncio.run(start(queue, calls, "a", "b"))
    assert calls.made == ["a", "b"]
    asyncio.run(second())
    assert (calls.made, heard) == (["a", "b", "c", "d"], [])


async def hang_in(queue: AsyncBackground, calls: Calls, *names: str) -> None:
    """Starts the calls, and returns while the first hangs."""
    calls.held = {names[0]}
    await start(queue, calls, *names)
    for _ in range(3):
        await asyncio.sleep(0)
    assert not calls.held


def test_what_a_closed_loop_left_is_made_by_the_next() -> None:
    queue, calls, heard = background()
    first = asyncio.new_event_loop()
    first.run_until_complete(hang_in(queue, calls, "a", "b"))
    abandoned = asyncio.all_tasks(first)
    first.close()

    async def second() -> None:
        await start(queue, calls, "c")
        await queue.flush()

    asyncio.run(second())
    assert (calls.made, heard) == (["a", "b", "c"], [])
    for task in abandoned:
        task.get_coro().close()  # else Python complains about it later


def test_a_loop_that_goes_on_after_another_took_over_makes_nothing_twice() -> None:
    queue, calls, heard = background()
    first = asyncio.new_event_loop()
    first.run_until_complete(hang_in(queue, calls, "a", "b"))
    asyncio.run(queue.flush())
    assert calls.made == ["a", "b"]
    (abandoned,) = asyncio.all_tasks(first)
    abandoned.cancel()
    first.run_until_complete(asyncio.wait([abandoned]))
    first.close()
    assert (calls.made, heard) == (["a", "b"], [])


def test_flush_alone_takes_over_from_a_stopped_loop() -> None:
    queue, calls, _ = background()
    first = asyncio.new_event_loop()
    first.run_until_complete(start(queue, calls, "a"))
    asyncio.run(queue.flush())
    assert calls.made == ["a"]
    first.run_until_complete(asyncio.sleep(0))
    first.close()
    assert calls.made == ["a"]


def test_loops_of_two_threads_share_one_order() -> None:
    queue, calls, _ = background()

    async def many(letter: str) -> None:
        for number in range(50):
            queue.start(calls.named(f"{letter}{number}"))
            await asyncio.sleep(0)
        await queue.flush()

    threads = [threading.Thread(target=lambda letter=letter: asyncio.run(many(letter))) for letter in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    for letter in "ab":
        assert list(dict.fromkeys(name for name in calls.made if name[0] == letter)) == [
            f"{letter}{number}" for number in range(50)
        ]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.skipif(sys.platform == "win32", reason="there are no forks on Windows")
def test_a_forked_process_makes_its_own_calls_and_not_its_parents() -> None:
    transport = Recording()
    transport.go.clear()
    client = ReflexioClient(transport=transport)
    client.delete_session("of-the-parent")
    child = os.fork()
    if child == 0:
        transport.go.set()
        client.delete_session("of-the-child")
        client.flush()
        said = " ".join(transport.paths)
        os._exit(0 if "of-the-child" in said and "of-the-parent" not in said else 1)
    assert os.waitpid(child, 0)[1] == 0
    transport.go.set()
    client.flush()
    assert len(transport.paths) == 1


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
TWO_LOOPS = """
import asyncio
from reflexio import AsyncReflexioClient

client = AsyncReflexioClient({key!r}, {url!r})
asyncio.run(client.whoami())
first = asyncio.new_event_loop()
first.run_until_complete(client.delete_session("{session}"))
"""


@pytest.mark.parametrize("program", [PLAIN, ASYNCHRONOUS, TWO_LOOPS], ids=["plain", "asynchronous", "two loops"])
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
