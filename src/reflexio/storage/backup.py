"""Copies of a SQLite database: made while servers use it, checked, and put back in one transaction.

A copy shows one moment: it is read in one transaction, beside which writers go on. It is one file without a log, for
its owner alone, and it is on disk before it has its name.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from reflexio.errors import Conflict, NotFound, StorageCorrupt, StorageFull, StorageNewer, StorageTaken
from reflexio.storage.migrate import REVISIONS
from reflexio.storage.private_files import make_private

OnProgress = Callable[[int, int], None]
"""Takes how many pages are copied, and of how many."""
PAGES_AT_ONCE = 500
COUNTED = ("learnings", "requests", "interactions", "erasures")
PRIVATE = 0o600


@dataclass(frozen=True)
class BackupContents:
    """The schema of a copy, and how many rows it has of some tables."""

    revision: str
    counts: dict[str, int]


def ignore_progress(copied: int, total: int) -> None:
    """For callers that show none."""


def back_up(source: Path, target: Path, on_progress: OnProgress = ignore_progress) -> BackupContents:
    """Writes a checked copy of the database `source` to the new file `target`."""
    if not source.exists():
        raise NotFound("Choose its folder with --data.", what="database in", id=str(source.parent))
    if target.exists():
        raise Conflict(f"{target} exists; choose another name.")
    part = target.with_name(f"{target.name}.part")
    part.unlink(missing_ok=True)
    try:
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE))
        with _explained(source), closing(sqlite3.connect(source, isolation_level=None)) as reading:
            reading.execute("PRAGMA query_only=ON")
            reading.execute("BEGIN")
            _read_revision(reading, source)  # from here on it sees one moment
            _copy(reading, part, on_progress)
        contents = check_backup(part)
        _sync(part)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    _sync(target.parent)
    return contents


def check_backup(path: Path) -> BackupContents:
    """Reads the whole copy. Raises StorageCorrupt when it is damaged or none of ours, StorageNewer when it is newer."""
    if not path.exists():
        raise NotFound(what="file", id=str(path))
    uri = f"{path.resolve().as_uri()}?mode=ro"
    with _explained(path), closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
        revision = _read_revision(connection, path)
        if connection.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
            raise StorageCorrupt(path=str(path))
        counts = {
            table: int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608  of a constant
            for table in COUNTED
            if _has_table(connection, table)
        }
    return BackupContents(revision, counts)


def restore(backup: Path, target: Path, on_progress: OnProgress = ignore_progress) -> None:
    """Puts a copy in the place of the database `target`, or makes it. A crash leaves the one or the other.

    Raises StorageTaken while another process has the database open.
    """
    make_private(target)
    uri = f"{backup.resolve().as_uri()}?mode=ro"
    with _explained(target), closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as reading:
        _close_out(target)
        with closing(sqlite3.connect(target, timeout=0, isolation_level=None)) as writing:
            reading.backup(writing, pages=PAGES_AT_ONCE, progress=_report(on_progress))
    make_private(target)


def erasures_of(path: Path) -> set[tuple[str, str]]:
    """Organisation and digest of the receipt of each erasure that a database knows of."""
    with _explained(path), closing(sqlite3.connect(path, isolation_level=None)) as connection:
        if not _has_table(connection, "erasures"):
            return set()
        return {(org, digest) for org, digest in connection.execute("SELECT org_id, digest FROM erasures")}


def users_of(path: Path) -> Iterator[tuple[str, str]]:
    """Organisation and name of each user that a database has rows of."""
    with _explained(path), closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield from connection.execute(
            "SELECT org_id, user_id FROM users UNION SELECT org_id, user_id FROM requests "
            "UNION SELECT org_id, user_id FROM learnings WHERE user_id <> ''"
        )


def _copy(reading: sqlite3.Connection, part: Path, on_progress: OnProgress) -> None:
    with closing(sqlite3.connect(part, isolation_level=None)) as writing:
        reading.backup(writing, pages=PAGES_AT_ONCE, progress=_report(on_progress))
        # One file that is complete by itself: a log beside it could be forgotten when it is moved.
        writing.execute("PRAGMA journal_mode=DELETE")


def _report(on_progress: OnProgress) -> Callable[[int, int, int], None]:
    return lambda _, remaining, total: on_progress(total - remaining, total)


def _close_out(path: Path) -> None:
    """Ends the write-ahead log, which only works while no other process has the database open.

    What is no database, such as a damaged file, is emptied: restoring is what helps then.
    """
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as connection:
        try:
            connection.execute("PRAGMA journal_mode=DELETE").fetchone()
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("ROLLBACK")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise StorageTaken(path=str(path.parent)) from error
            raise
        except sqlite3.DatabaseError:
            os.truncate(path, 0)
            for log in ("-wal", "-shm", "-journal"):
                path.with_name(f"{path.name}{log}").unlink(missing_ok=True)


def _read_revision(connection: sqlite3.Connection, path: Path) -> str:
    if not _has_table(connection, "alembic_version"):
        raise StorageCorrupt(path=str(path))
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    if row is None or row[0] not in REVISIONS:
        raise StorageNewer(path=str(path), found=row and row[0], known=REVISIONS[-1])
    return str(row[0])


def _has_table(connection: sqlite3.Connection, name: str) -> bool:
    query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
    return connection.execute(query, (name,)).fetchone() is not None


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Raises errors of the driver as errors that name a remedy."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_FULL:
            raise StorageFull(path=str(path)) from error
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
            raise StorageTaken(path=str(path.parent)) from error
        raise StorageCorrupt(path=str(path)) from error
    except sqlite3.DatabaseError as error:
        raise StorageCorrupt(path=str(path)) from error
