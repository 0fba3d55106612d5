"""How long the pages of the dashboard take with a million turns and 100,000 learnings."""

import asyncio
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import delete

from reflexio.models.learning import Kind, Learning, PlaybookStatus, Scope, Status
from reflexio.server.process import running_server
from reflexio.storage.schema import unembedded
from reflexio.storage.sqlite import SqliteDatabase, open_sqlite
from reflexio.storage.transaction import SqlTx
from reflexio.storage.vectors.cache import VectorCache
from tests.bench.report import Figure

ORG, TURNS_OF_REQUEST, REQUESTS_OF_SESSION, USERS, VERSIONS = "default", 4, 2, 1_000, 5
AGENT_PLAYBOOKS = 2_000
BATCH = 2_000
LOADS = 5
WORDS = [
    "refund", "parcel", "neighbour", "invoice", "lamp", "delivery", "slot", "window",
    "room", "breakfast", "train", "key", "garden", "price", "photo",
]  # fmt: skip
PAGES = {
    "overview": "/",
    "conversations": "/conversations",
    "conversations of a user": "/conversations?user=user-7",
    "conversations of a version": "/conversations?version=v3",
    "conversations of a week": "/conversations?from={week}&to={today}",
    "conversations, a later page": "{next}",
    "one conversation": "/conversations/session?user=user-0&id=session-0",
    "agent playbooks": "/learnings",
    "agent playbooks to review": "/learnings?review=pending",
    "user playbooks": "/learnings?kind=user_playbook",
    "user playbooks of a version": "/learnings?kind=user_playbook&version=v3",
    "user playbooks, archived": "/learnings?kind=user_playbook&status=archived",
    "user playbooks, searched": "/learnings?kind=user_playbook&q=refund+of+a+parcel",
    "profiles that always hold": "/learnings?kind=profile&scope=always",
    "one agent playbook": "/learnings/1",
    "one user playbook": "/learnings/5001",
    "review": "/review",
    "review of a version": "/review?version=v3",
    "playground": "/playground?message=refund+of+a+parcel&user=user-7",
    "versions": "/versions",
    "operations": "/operations",
    "settings": "/settings",
    "status": "/status",
}


def dashboard(turns: int = 1_000_000, learnings: int = 100_000) -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder) / "reflexio.db", turns, learnings)
        with (
            running_server(Path(folder)) as url,
            httpx.Client(base_url=url, headers={"Accept": "text/html"}, timeout=120) as browser,
        ):
            return [Figure(f"page: {name}, p50", load(browser, path), "ms", 500) for name, path in paths(browser)]


def paths(browser: httpx.Client) -> Iterator[tuple[str, str]]:
    days = {"today": _day(0), "week": _day(7)}
    later = browser.get("/conversations").text.partition('rel="next"')[0].rpartition('href="')[2].partition('"')[0]
    for name, path in PAGES.items():
        yield name, path.format(next=later.replace("&amp;", "&"), **days)


def load(browser: httpx.Client, path: str) -> float:
    taken = []
    for _ in range(LOADS):
        began = time.perf_counter()
        answer = browser.get(path)
        taken.append((time.perf_counter() - began) * 1000)
        assert answer.status_code == 200, (path, answer.status_code)
    return statistics.median(taken)


def fill(path: Path, turns: int, learnings: int) -> None:
    """Rows as the server would store them, over the last four weeks."""
    database = open_sqlite(path)
    asyncio.run(_add_learnings(database, learnings))
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA synchronous=OFF")
    now = int(time.time())
    requests = turns // TURNS_OF_REQUEST
    step = 28 * 86_400 / requests

    def at(number: int) -> int:
        return now - 28 * 86_400 + int(number * step)

    def user(number: int) -> str:
        return f"user-{number // REQUESTS_OF_SESSION % USERS}"

    connection.executemany(
        "INSERT INTO requests (org_id, request_id, user_id, session_id, source, agent_version, created_at)"
        " VALUES ('default', ?, ?, ?, 'web', ?, ?)",
        (
            (f"r{n}", user(n), f"session-{n // REQUESTS_OF_SESSION}", f"v{n // REQUESTS_OF_SESSION % VERSIONS}", at(n))
            for n in range(requests)
        ),
    )
    connection.executemany(
        "INSERT INTO interactions (org_id, user_id, request_id, created_at, role, content, user_action, is_indexed,"
        " is_learned) VALUES ('default', ?, ?, ?, 'User', ?, 'none', 1, 1)",
        (
            (user(n // TURNS_OF_REQUEST), f"r{n // TURNS_OF_REQUEST}", at(n // TURNS_OF_REQUEST), f"Turn {n} " * 8)
            for n in range(turns)
        ),
    )
    connection.executemany(
        "INSERT INTO windows (org_id, key, user_id, state, turn_ids, counts, created_at)"
        " VALUES ('default', ?, ?, 'learned', '[]', '{}', ?)",
        ((f"w{n}", user(n), at(n)) for n in range(requests)),
    )
    connection.executemany(
        "INSERT INTO exposures (org_id, kind, public_id, interaction_id) VALUES ('default', 'agent_playbook', ?, ?)",
        ((str(n % 20 + 1), n) for n in range(turns // 2)),
    )
    connection.commit()
    connection.close()


async def _add_learnings(database: SqliteDatabase, count: int) -> None:
    now = int(time.time())
    for first in range(0, count, BATCH):
        rows = [_learning(number, now - 28 * 86_400 + number * 20) for number in range(first, first + BATCH)]
        await database.write(partial(_store, rows=rows))
    await database.close()


def _store(connection: Any, rows: list[Learning]) -> None:
    SqlTx(connection, ORG, VectorCache()).learnings.add(rows)
    connection.execute(delete(unembedded))


def _learning(number: int, at: int) -> Learning:
    words = " ".join(WORDS[(number * step) % len(WORDS)] for step in (1, 3, 5, 7))
    kind = Kind.AGENT_PLAYBOOK if number < AGENT_PLAYBOOKS else (Kind.USER_PLAYBOOK, Kind.PROFILE)[number % 2]
    is_agent = kind is Kind.AGENT_PLAYBOOK
    windows = [{"user_playbook_id": AGENT_PLAYBOOKS + 2 * n, "source_interaction_ids": [n + 1]} for n in range(1, 300)]
    return Learning(
        kind,
        f"Say {words}, number {number}.",
        key=f"profile-{number}" if kind is Kind.PROFILE else "",
        user_id="" if is_agent else f"user-{number % USERS}",
        agent_version="" if kind is Kind.PROFILE else f"v{number % VERSIONS}",
        name="" if kind is Kind.PROFILE else "playbook",
        request_id="" if is_agent else f"r{number}",
        trigger="" if kind is Kind.PROFILE else f"The user asks about {words}",
        status=Status.ARCHIVED if number % 97 == 0 else Status.CURRENT,
        review=(PlaybookStatus.APPROVED, PlaybookStatus.PENDING, PlaybookStatus.REJECTED)[number % 3],
        scope=Scope.ALWAYS if number % 50 == 0 else Scope.WHEN_RELEVANT,
        details={"source_windows": windows} if is_agent else {"source_interaction_ids": [number * 4 + 1]},
        created_at=at,
        modified_at=at,
    )


def _day(days_ago: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(time.time() - days_ago * 86_400))
