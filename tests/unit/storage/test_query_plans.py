"""How SQLite finds rows: what is asked for by id must not walk through the rows of everyone."""

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

ASKED: dict[str, Callable[[SqlTx], Any]] = {
    "turns": lambda tx: tx.interactions.many(IDS),
    "turns not learned from": lambda tx: tx.interactions.unlearned_among(IDS),
    "turns that pass": lambda tx: tx.interactions._passing(TurnFilter(user_id="ann"), IDS),
    "turns to mark": lambda tx: tx.interactions.mark_learned(IDS),
    "learnings": lambda tx: tx.learnings.many(IDS),
    "learnings that pass": lambda tx: tx.learnings._passing(CURRENT, IDS),
    "a learning": lambda tx: tx.learnings.get(LearningFilter(Kind.USER_PLAYBOOK, ids=(7,))),
}


WAITING: dict[str, tuple[Callable[[SqlTx], Any], str]] = {
    "turns to index": (lambda tx: SqlVectors(tx._connection).index_turns(200), "interactions_unindexed"),
    "turns to learn from": (lambda tx: tx.interactions.unlearned("ann", 10), "interactions_unlearned"),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
async def test_rows_are_looked_up_by_their_ids(tmp_path: Path, ask: Callable[[SqlTx], Any]) -> None:
    plan = await first_plan(tmp_path, ask)
    assert plan[0].endswith("USING INTEGER PRIMARY KEY (rowid=?)"), plan


@pytest.mark.parametrize(("ask", "index"), WAITING.values(), ids=WAITING)
async def test_what_waits_is_found_without_what_is_done(
    tmp_path: Path, ask: Callable[[SqlTx], Any], index: str
) -> None:
    plan = await first_plan(tmp_path, ask)
    assert f"INDEX {index}" in plan[0], plan


async def first_plan(tmp_path: Path, ask: Callable[[SqlTx], Any]) -> list[str]:
    """How SQLite answers the first statement of a question."""
    database, run = open_sqlite(tmp_path / "data.db"), list[str]()

    def see(connection: Connection) -> list[str]:
        driver_connection(connection).set_trace_callback(run.append)
        ask(SqlTx(connection, "default", VectorCache()))
        driver_connection(connection).set_trace_callback(None)
        return [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {run[0]}")]

    plan = await database.write(see)
    await database.close()
    return plan
