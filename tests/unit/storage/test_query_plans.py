"""How SQLite finds rows: a lookup by id must not walk through the rows of everyone."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from reflexio.models.learning import Kind, Status
from reflexio.models.paging import Page
from reflexio.ports.storage import LearningFilter, SessionFilter, SessionSummary, TimeRange, TurnFilter
from reflexio.storage.compiled import driver_connection
from reflexio.storage.sqlite import open_sqlite
from reflexio.storage.tables.embeddings import SqlVectors
from reflexio.storage.transaction import SqlTx
from reflexio.storage.vectors.cache import VectorCache

IDS = list(range(1, 51))
CURRENT = LearningFilter(Kind.USER_PLAYBOOK, statuses=(Status.CURRENT,))

BY_ID: dict[str, Callable[[SqlTx], Any]] = {
    "turns": lambda tx: tx.interactions.many(IDS),
    "turns not learned from": lambda tx: tx.interactions.unlearned_among(IDS),
    "turns that pass": lambda tx: tx.interactions._passing(TurnFilter(user_id="ann"), IDS),
    "turns to mark": lambda tx: tx.interactions.mark_learned(IDS),
    "turns to mark as unread": lambda tx: tx.interactions.mark_unread(IDS, (Kind.PROFILE,)),
    "learnings": lambda tx: tx.learnings.many(IDS),
    "learnings that pass": lambda tx: tx.learnings._passing(CURRENT, IDS),
    "a learning": lambda tx: tx.learnings.get(LearningFilter(Kind.USER_PLAYBOOK, ids=(7,))),
}


BY_PARTIAL_INDEX: dict[str, tuple[Callable[[SqlTx], Any], str]] = {
    "turns to index": (lambda tx: SqlVectors(tx._connection).to_index(200), "interactions_unindexed"),
    "turns to learn from": (lambda tx: tx.interactions.unlearned("ann", 10), "interactions_unlearned"),
    "turns that were not understood": (lambda tx: tx.interactions.count_unread("ann"), "interactions_unread"),
}


WEEK = TimeRange(1, 604_800)
SESSIONS: dict[str, tuple[Callable[[SqlTx], Any], str]] = {
    "all": (lambda tx: tx.sessions.page(SessionFilter(), Page(25)), "requests_by_time"),
    "of a user": (lambda tx: tx.sessions.page(SessionFilter("ann"), Page(25)), "requests_of_user"),
    "of a version": (lambda tx: tx.sessions.page(SessionFilter(None, "v1"), Page(25)), "requests_of_version"),
    "of a week": (lambda tx: tx.sessions.page(SessionFilter(within=WEEK), Page(25)), "requests_by_time"),
    "set aside": (lambda tx: tx.windows.set_aside(10), "windows_set_aside"),
}


@pytest.mark.parametrize(("query", "index"), SESSIONS.values(), ids=SESSIONS)
async def test_lists_of_pages_are_read_in_the_order_of_an_index(
    tmp_path: Path, query: Callable[[SqlTx], Any], index: str
) -> None:
    plan = await first_plan(tmp_path, query)
    assert f"INDEX {index}" in plan[0], plan
    assert not any("TEMP B-TREE" in step or "SCAN" in step for step in plan), plan


async def test_numbers_of_sessions_do_not_walk_through_the_turns_of_everybody(tmp_path: Path) -> None:
    summary = SessionSummary(1, "s", "ann", "", "", 0)
    plan = await first_plan(tmp_path, lambda tx: tx.sessions._numbers([summary]))
    for table in ("interactions", "learnings"):
        steps = [step for step in plan if step.startswith(f"SEARCH {table} ")]
        assert steps
        assert all("request_id=?" in step for step in steps), plan
    turns = await first_plan(tmp_path, lambda tx: tx.sessions.turns("ann", "s", 100))
    assert "interactions_of_request (org_id=? AND request_id=?" in turns[0], turns


@pytest.mark.parametrize("query", BY_ID.values(), ids=BY_ID)
async def test_rows_are_looked_up_by_their_ids(tmp_path: Path, query: Callable[[SqlTx], Any]) -> None:
    plan = await first_plan(tmp_path, query)
    assert plan[0].endswith("USING INTEGER PRIMARY KEY (rowid=?)"), plan


@pytest.mark.parametrize(("query", "index"), BY_PARTIAL_INDEX.values(), ids=BY_PARTIAL_INDEX)
async def test_what_waits_is_found_without_what_is_done(
    tmp_path: Path, query: Callable[[SqlTx], Any], index: str
) -> None:
    plan = await first_plan(tmp_path, query)
    assert f"INDEX {index}" in plan[0], plan


async def first_plan(tmp_path: Path, query: Callable[[SqlTx], Any]) -> list[str]:
    """How SQLite answers the first statement of a query."""
    database, statements = open_sqlite(tmp_path / "data.db"), list[str]()

    def explain(connection: Connection) -> list[str]:
        driver_connection(connection).set_trace_callback(statements.append)
        query(SqlTx(connection, "default", VectorCache()))
        driver_connection(connection).set_trace_callback(None)
        return [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statements[0]}")]

    plan = await database.write(explain)
    await database.close()
    return plan
