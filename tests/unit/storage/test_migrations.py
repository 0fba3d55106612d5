"""Schema and migrations agree."""

import hashlib
import importlib
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection, create_engine

from reflexio.storage import migrate, migrations


def test_a_new_database_is_what_migrating_an_empty_one_makes(tmp_path: Path) -> None:
    def tables(path: Path, make: Callable[[Connection], None]) -> set[tuple[str, ...]]:
        engine = create_engine(f"sqlite:///{path}")
        with engine.begin() as connection:
            make(connection)
        with engine.connect() as connection:
            rows = connection.exec_driver_sql("SELECT type, name, tbl_name, sql FROM sqlite_master").all()
            versions = connection.exec_driver_sql("SELECT version_num FROM alembic_version").all()
        engine.dispose()
        # Neither the order of the constraints nor blanks say anything.
        definitions = {
            (kind, name, table, *sorted(re.split(r"[\s,()]+", sql or ""))) for kind, name, table, sql in rows
        }
        return definitions | {tuple(row) for row in versions}

    assert tables(tmp_path / "new.db", migrate._create) == tables(tmp_path / "migrated.db", migrate._upgrade)


FROZEN = {
    "0001": "1d6dc7eb799d465c",
    "0002": "63a7ba24c8e7b1b0",
    "0003": "7d0bf1c7c46c97b6",
    "0004": "fa7b195b83f61c4f",
    "0005": "142e1ce5a5563ba0",
    "0006": "092b7776d35de532",
    "0007": "7ab6dd76c1560192",
    "0008": "97438a20bab7329e",
}
"""What each migration makes, as a digest. It never changes: a database that somebody has was made by it."""


@pytest.mark.parametrize("revision", migrate.REVISIONS)
def test_a_migration_is_never_changed_but_followed_by_another(tmp_path: Path, revision: str) -> None:
    engine = create_engine(f"sqlite:///{tmp_path / 'reflexio.db'}")
    with engine.begin() as connection:
        migrate._upgrade(connection, to=revision)
        # Tables that SQLite makes automatically for a full-text index are not ours.
        rows = connection.exec_driver_sql(
            "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"
            r" AND name NOT GLOB '*_fts_*' AND name NOT GLOB 'sqlite_*' ORDER BY name"
        ).all()
    engine.dispose()
    definitions = "\n".join(f"{name}: {' '.join(sql.split())}" for name, sql in rows)
    assert hashlib.sha256(definitions.encode()).hexdigest()[:16] == FROZEN[revision]


def test_every_migration_is_listed_in_order() -> None:
    folder = Path(migrations.__file__).parent / "versions"
    files = sorted(file.name.partition("_")[0] for file in folder.glob("[0-9]*.py"))
    assert tuple(files) == migrate.REVISIONS


def test_the_former_trigger_of_standing_orders_is_removed_by_the_migration() -> None:
    migration = importlib.import_module("reflexio.storage.migrations.versions.0002_scope")
    learnings = sa.table("learnings", *map(sa.column, ("id", "kind", "trigger", "content", "scope")))
    stored = [
        {"id": 1, "kind": "user_playbook", "trigger": "The user asks for anything", "content": "Ask why.", "scope": ""},
        {"id": 2, "kind": "user_playbook", "trigger": "The user asks for a refund", "content": "Ask why.", "scope": ""},
    ]
    with sa.create_engine("sqlite://").begin() as connection:
        connection.exec_driver_sql("CREATE TABLE learnings (id, kind, trigger, content, scope)")
        connection.execute(sa.insert(learnings), stored)
        migration._decide_scopes(connection)
        rows = connection.execute(sa.select(learnings.c.trigger, learnings.c.scope)).all()
    assert [tuple(row) for row in rows] == [("", "always"), ("The user asks for a refund", "when_relevant")]
