"""The registry of erasure names every table."""

import sqlite3
from pathlib import Path

from reflexio.storage.erasure import RULES, SHADOW_TABLES
from reflexio.storage.schema import metadata
from reflexio.storage.sqlite import open_sqlite

OF_THE_DATABASE = {"alembic_version", "sqlite_sequence"}
"""The number of the schema, and the last number of each table."""


async def test_the_registry_names_every_table(tmp_path: Path) -> None:
    path = tmp_path / "reflexio.db"
    await open_sqlite(path).close()
    connection = sqlite3.connect(path)
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    connection.close()
    named = [rule.table.name for rule in RULES]
    assert len(named) == len(set(named))
    assert {*named, *SHADOW_TABLES} == tables - OF_THE_DATABASE
    assert set(metadata.tables) <= set(named)


def test_every_table_that_names_a_user_is_erased() -> None:
    kept = {rule.table.name for rule in RULES if rule.of_user is None}
    naming = {name for name, table in metadata.tables.items() if {"user_id", "learning_id"} & set(table.c.keys())}
    assert naming.isdisjoint(kept)
    assert all(rule.leftovers for rule in RULES if rule.of_user)


async def test_the_log_is_empty_after_a_wipe_and_waits_for_readers(tmp_path: Path) -> None:
    path = tmp_path / "reflexio.db"
    database = open_sqlite(path)
    store, log = database.of("o"), tmp_path / "reflexio.db-wal"
    await store.write(lambda tx: tx.configs.put("{}", 1))
    assert log.stat().st_size > 0
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM configs").fetchone()
    await store.write(lambda tx: tx.configs.put("{}", 2))
    assert not await database.wipe()
    reader.close()
    assert await database.wipe()
    assert log.stat().st_size == 0
    await database.close()
