"""How SQLite finds rows: a lookup by id must not walk through the rows of everyone."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from reflexio.models.learning import Kind, Status
from reflexio.ports.storage import LearningFilter, TurnFilter
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
