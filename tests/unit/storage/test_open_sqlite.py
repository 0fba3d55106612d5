"""Opening a database that is not as it should be: a clear error that names the remedy, and nothing is changed."""

import asyncio
import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reflexio.errors import StorageCorrupt, StorageNewer, StorageReadOnly, StorageUnfinished
from reflexio.models.paging import Page
from reflexio.ports.storage import TimeRange
from reflexio.storage.migrate import REVISIONS
from reflexio.storage.sqlite import open_sqlite
from tests.builders import contents, on_database, request, said

NOBODY = 65_534


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "reflexio.db"


def make(path: Path, turns: int = 1) -> None:
    def write(tx) -> None:  # type: ignore[no-untyped-def]
        made = request("r")
        tx.requests.add(made)
        tx.interactions.add(made, said(*(f"{number} {'x' * 500}" for number in range(turns))))

    on_database(path.parent, lambda database: database.of("acme").write(write))


def change(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.fixture
def unprivileged(tmp_path: Path) -> Iterator[Callable[[], None]]:
    """Makes the rest of the test run as somebody without rights. Root may write everywhere."""
    was = os.geteuid()
    parents = [tmp_path, *tmp_path.parents]

    def drop() -> None:
        if was == 0:
            for parent in parents:
                if parent.is_relative_to(tmp_path.parent.parent) and parent != Path("/"):
                    parent.chmod(parent.stat().st_mode | 0o055)
            os.seteuid(NOBODY)

    yield drop
    os.seteuid(was)


def test_a_new_database_is_for_its_owner_only(path: Path) -> None:
    make(path)
    assert path.stat().st_mode & 0o077 == 0


def test_missing_folders_are_made(tmp_path: Path) -> None:
    asyncio.run(open_sqlite(tmp_path / "a" / "b" / "reflexio.db").close())
    assert (tmp_path / "a" / "b" / "reflexio.db").exists()


def test_a_database_can_be_opened_again(path: Path) -> None:
    make(path)
    found = on_database(
        path.parent,
        lambda database: database.of("acme").read(lambda tx: tx.interactions.page(None, TimeRange(), Page(9))),
    )
    assert len(contents(found.rows)) == 1


def test_a_newer_schema_is_refused_and_left_alone(path: Path) -> None:
    make(path)
    change(path, "UPDATE alembic_version SET version_num = '9999'")
    before = path.read_bytes()
    with pytest.raises(StorageNewer, match=rf"schema '9999', this one knows up to '{REVISIONS[-1]}'"):
        open_sqlite(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("garbage", [b"no database at all " * 500, b"x" * 600, b"SQLite format 3\0" + b"\xff" * 4080])
def test_garbage_is_refused_and_left_alone(path: Path, garbage: bytes) -> None:
    path.write_bytes(garbage)
    with pytest.raises(StorageCorrupt, match="restore a backup"):
        open_sqlite(path)
    assert path.read_bytes() == garbage


def test_the_database_of_another_program_is_refused_and_left_alone(path: Path) -> None:
    change(path, "CREATE TABLE songs (title TEXT)")
    before = path.read_bytes()
    with pytest.raises(StorageCorrupt, match="not a Reflexio database"):
        open_sqlite(path)
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_an_empty_file_becomes_a_database(path: Path) -> None:
    path.touch()
    make(path)
    assert path.stat().st_size > 0


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_file_cut_off_in_the_middle_is_called_damaged(path: Path, share: float) -> None:
    make(path, turns=500)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share) // 4096 * 4096])

    async def use() -> None:
        database = open_sqlite(path)
        try:
            store = database.of("acme")
            await store.read(lambda tx: tx.interactions.page(None, TimeRange(), Page(1000)))
            await store.read(lambda tx: tx.requests.get("r"))
        finally:
            await database.close()

    with pytest.raises(StorageCorrupt, match="restore a backup"):
        asyncio.run(use())


def test_a_folder_below_a_file_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageReadOnly, match="write permission"):
        open_sqlite(tmp_path / "file" / "reflexio.db")


def test_a_folder_without_write_permission(path: Path, unprivileged: Callable[[], None]) -> None:
    path.parent.chmod(0o555)
    unprivileged()
    with pytest.raises(StorageReadOnly, match="choose another with --data"):
        open_sqlite(path)


def test_a_file_without_write_permission(path: Path, unprivileged: Callable[[], None]) -> None:
    make(path)
    path.chmod(0o444)
    unprivileged()
    with pytest.raises(StorageReadOnly, match="write permission"):
        open_sqlite(path)


def test_a_file_without_write_permission_in_a_folder_with_it(path: Path, unprivileged: Callable[[], None]) -> None:
    make(path)
    path.parent.chmod(0o777)
    path.chmod(0o444)
    unprivileged()
    with pytest.raises(StorageReadOnly, match=r"reflexio.db' cannot be written; give this user write permission on it"):
        open_sqlite(path)


@pytest.mark.parametrize(
    ("statement", "missing"),
    [
        ("ALTER TABLE interactions DROP COLUMN citations", "interactions.citations"),
        ("DROP TABLE optimisation_events", "optimisation_events."),
    ],
)
def test_a_database_of_an_unreleased_version_is_refused_and_left_alone(
    path: Path, statement: str, missing: str
) -> None:
    make(path)
    change(path, statement)
    before = path.read_bytes()
    reason = rf"unreleased Reflexio \({re.escape(missing)}.*move the file away to start"
    with pytest.raises(StorageUnfinished, match=reason):
        open_sqlite(path)
    assert path.read_bytes() == before


def test_commits_are_durable_and_readers_do_not_block_writers(path: Path) -> None:
    async def pragmas() -> tuple[object, object]:
        database = open_sqlite(path)
        try:
            modes = await database.read(lambda connection: connection.exec_driver_sql("PRAGMA journal_mode").scalar())
            level = await database.write(lambda connection: connection.exec_driver_sql("PRAGMA synchronous").scalar())
            return modes, level
        finally:
            await database.close()

    assert asyncio.run(pragmas()) == ("wal", 2)
