"""Things that tests are made of, each in one call."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import httpx

from reflexio.app import DATABASE
from reflexio.client.sync import ReflexioClient
from reflexio.models.access import ALL_SCOPES, KeyScope
from reflexio.models.interaction import Interaction, InteractionData, Request
from reflexio.organisations import keys
from reflexio.ports.clock import SystemClock
from reflexio.storage.sqlite import SqliteDatabase, open_sqlite

T = TypeVar("T")


def name(what: str = "user") -> str:
    """A name that no other test uses."""
    return f"{what}-{uuid4().hex[:12]}"


def turns(*said: str) -> list[dict[str, Any]]:
    """A conversation: user and agent by turns."""
    words = said or ("Where is my parcel?", "It is with your neighbour.")
    return [{"role": "Agent" if place % 2 else "User", "content": each} for place, each in enumerate(words)]


def body(**changes: Any) -> dict[str, Any]:
    """A publish as it stands on the wire."""
    return {"user_id": "ann", "interaction_data_list": turns(), **changes}


def request(request_id: str = "", **changes: Any) -> Request:
    """A stored request."""
    values = {"request_id": request_id or name("request"), "user_id": "ann", "created_at": 100, "session_id": "s"}
    return Request.model_validate({**values, **changes})


def said(*words: str, at: int = 100) -> list[InteractionData]:
    return [InteractionData(content=each, created_at=at) for each in words or ("hello",)]


def contents(found: Iterable[Interaction]) -> list[str]:
    return [turn.content for turn in found]


def new_key(folder: Path, org: str, *, scopes: frozenset[KeyScope] = ALL_SCOPES, owner: str = "") -> str:
    """A key for an organisation, made as `reflexio keys create` makes it."""
    created = on_database(folder, lambda stored: keys.create(stored, SystemClock(), org, scopes=scopes, owner=owner))
    return created.token


def on_database(folder: Path, act: Callable[[SqliteDatabase], Awaitable[T]]) -> T:
    """Runs `act` on the database of a folder, beside a server if there is one."""

    async def run() -> T:
        database = open_sqlite(folder / DATABASE)
        try:
            return await act(database)
        finally:
            await database.close()

    return run_apart(run())


def run_apart(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end in a thread: while Playwright is open, the main one has an event loop already."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def every_turn(client: ReflexioClient, user_id: str, *, top_k: int = 10_000) -> list[Interaction]:
    """All turns of a user, page after page, newest first."""
    found: list[Interaction] = []
    cursor = None
    while True:
        page = client.get_interactions(user_id, top_k=top_k, cursor=cursor)
        found += page.interactions
        assert page.next_cursor is None or page.next_cursor != cursor, "the walk stands still"
        cursor = page.next_cursor
        if cursor is None:
            return found


def problem(answer: httpx.Response, status: int) -> str:
    """The words of a problem, after a look at its shape: what every error of the server must be."""
    assert answer.status_code == status, answer.text[:500]
    assert answer.headers["content-type"] == "application/problem+json"
    found = answer.json()
    assert found["status"] == status
    assert found["request_id"] == answer.headers["x-request-id"]
    assert "Traceback" not in answer.text
    assert isinstance(found["detail"], str)
    assert found["detail"].strip()
    return str(found["detail"])


def compact(value: Any) -> bytes:
    return json.dumps(value).encode()


def eventually(holds: Callable[[], bool], *, seconds: float = 30) -> None:
    """Waits for what the background is doing."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.05)
