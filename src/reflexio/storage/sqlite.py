"""SQLite: one file, one writer thread, several readers.

WAL lets readers go on while the writer commits; synchronous=FULL makes a commit survive a power cut. All writes that
wait are made in one transaction and become durable in one commit. Each write runs inside its own savepoint, so a write
that fails undoes nothing of the others.
"""

import asyncio
import os
import queue
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool

from reflexio.errors import StorageCorrupt, StorageFull, StorageReadOnly, StorageUnavailable
from reflexio.ports.fair_share import FairSlots
from reflexio.storage.compiled import driver_connection
from reflexio.storage.database import SqlDatabase
from reflexio.storage.migrate import migrate
from reflexio.storage.private_files import make_private
from reflexio.storage.vectors.cache import VectorCache

T = TypeVar("T")
READERS, READERS_OF_ONE = 4, 3
"""Reads at the same time, of all organisations and of one: large answers of one keep no other waiting."""
LARGEST_GROUP = 256
"""Writes in one commit, so that no caller waits for too many others."""
REPORTED_DAMAGE = 5
"""Damaged places that are named; the first says enough."""
WAL = "journal_mode=WAL"
PRAGMAS = (
    *("synchronous=FULL", "foreign_keys=ON", "busy_timeout=10000", "cache_size=-32000", "temp_store=MEMORY"),
    # Overwrites what is deleted: not every SQLite does by default.
    "secure_delete=ON",
)
CHANGES_SECONDS = 0.02
"""How soon a write of another process is noticed."""
LONGEST_WIPE = 0.1
"""Seconds that truncating the log waits for readers, and meanwhile lets no writer in."""

# SQLite gives its reasons only in words.
REASONS: tuple[tuple[str, type[StorageUnavailable]], ...] = (
    ("disk is full", StorageFull),
    ("not a database", StorageCorrupt),
    ("malformed", StorageCorrupt),
    ("readonly database", StorageReadOnly),
    ("unable to open", StorageReadOnly),
    ("permission denied", StorageReadOnly),
)
DRIVER_ERRORS = (DBAPIError, sqlite3.Error)
"""As SQLAlchemy raises them, and as they come from a statement that is handed straight to the driver."""


def open_sqlite(path: Path, *, max_daily_tokens: int | None = None) -> "SqliteDatabase":
    """Opens or creates the database and brings it to the current schema.

    `max_daily_tokens` is the operator's cap on what each organisation spends on a day.
    """
    try:
        make_private(path)
    except OSError as error:
        raise StorageReadOnly(str(error), path=str(path)) from error
    _check_permissions(path)
    with _storage_errors(str(path)):
        # Migrates before WAL, which changes the file: the database of another program stays as it is.
        migrating = _create_engine(path, "BEGIN IMMEDIATE", pragmas=PRAGMAS)
        try:
            with migrating.begin() as connection:
                migrate(connection, str(path))
        finally:
            migrating.dispose()
        writing = _create_engine(path, "BEGIN IMMEDIATE")
        # Connects once, alone: readers and writer must not race for the change to WAL.
        writing.connect().close()
        # A process that was killed leaves its log, with all that was deleted since the last checkpoint.
        _truncate_log(path)
    return SqliteDatabase(path, writing, _create_engine(path, "BEGIN", size=READERS), max_daily_tokens)


class SqliteDatabase(SqlDatabase):
    """Every organisation in one file. Opened by `open_sqlite`."""

    type = "sqlite"

    def __init__(self, path: Path, writing: Engine, reading: Engine, max_daily_tokens: int | None = None) -> None:
        super().__init__(path.name, max_daily_tokens)  # callers see the label: no path of this machine
        self._path = str(path)
        self._vectors = VectorCache()
        self._writing = writing
        self._reading = reading
        self._writer = SqliteWriter(writing, self._path)
        self._turns = FairSlots(READERS, READERS_OF_ONE)
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="reflexio-reader")
        self.changes = self._changes = SqliteChanges(self._path)

    async def read(self, fn: Callable[[Connection], T], *, org_id: str | None = None) -> T:
        async with self._turns.slot(org_id or ""):
            return await asyncio.get_running_loop().run_in_executor(self._readers, self._read, fn)

    def _read(self, fn: Callable[[Connection], T]) -> T:
        with _storage_errors(self._path), self._reading.connect() as connection:
            # All reads see one moment, also those that are handed straight to the driver.
            connection.begin()
            return fn(connection)

    async def write(self, fn: Callable[[Connection], T], *, org_id: str | None = None) -> T:
        result: T = await self._writer.write(fn)
        return result

    def vectors(self, connection: Connection) -> VectorCache:
        return self._vectors

    async def warm(self, model: str) -> None:
        for vectors in await self.read(lambda connection: self._vectors.stored(connection, model)):
            while not await self.read(vectors.catch_up):
                pass

    async def wipe(self) -> bool:
        def truncate() -> bool:
            with _storage_errors(self.label):
                return _truncate_log(Path(self._path))

        return await asyncio.to_thread(truncate)

    async def problems(self) -> list[str]:
        damage = await self.read(_damage)
        # Rows of a damaged file prove nothing.
        return damage or await super().problems()

    async def close(self) -> None:
        self._changes.close()
        await asyncio.to_thread(self._writer.close)
        await asyncio.to_thread(self._readers.shutdown)
        self._reading.dispose()
        self._writing.dispose()


class SqliteChanges:
    """Tells when somebody has written to the file, by the number that SQLite counts up for other connections.

    Reading it takes some microseconds, so that looking often costs an idle process next to nothing.
    """

    def __init__(self, path: str) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)

    @property
    def version(self) -> int:
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        return int(version)

    async def wait(self, seen: int, seconds: float) -> int:
        deadline = time.monotonic() + seconds
        while (version := self.version) == seen and time.monotonic() < deadline:  # noqa: ASYNC110  SQLite tells nobody
            await asyncio.sleep(CHANGES_SECONDS)
        return version

    def close(self) -> None:
        self._connection.close()


@dataclass(frozen=True)
class WaitingWrite:
    """What to write, and the future of the caller that waits for it."""

    fn: Callable[[Connection], Any]
    future: "asyncio.Future[Any]"


WriteResult = tuple[WaitingWrite, Any, BaseException | None]


class SqliteWriter:
    """The one thread that writes."""

    def __init__(self, engine: Engine, path: str) -> None:
        self._engine = engine
        self._path = path
        self._waiting: queue.SimpleQueue[WaitingWrite | None] = queue.SimpleQueue()
        self._connection: Connection | None = None
        self._closed = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="reflexio-writer", daemon=True)
        self._thread.start()

    def write(self, fn: Callable[[Connection], Any]) -> "asyncio.Future[Any]":
        """Queues a write. A caller that cancels the future before the write begins prevents it."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        with self._lock:
            if self._closed:
                raise StorageUnavailable("The database is closed.")
            self._waiting.put(WaitingWrite(fn, future))
        return future

    def close(self) -> None:
        """Makes all writes that are queued, then stops."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        try:
            while group := self._next_group():
                self._commit([write for write in group if not write.future.cancelled()])
        finally:
            self._drop_connection()

    def _next_group(self) -> list[WaitingWrite]:
        """All writes that wait, or none once the writer is closed and all are made."""
        group: list[WaitingWrite] = []
        write = self._waiting.get()
        while write is not None:
            group.append(write)
            if len(group) == LARGEST_GROUP or self._waiting.empty():
                return group
            write = self._waiting.get()
        if group:
            self._waiting.put(None)
        return group

    def _commit(self, group: list[WaitingWrite]) -> None:
        results: list[WriteResult] = []
        try:
            # One connection for all commits: taking it from the pool and returning it costs as much as a write.
            connection = self._connection = self._connection or self._engine.connect()
            with connection.begin():
                driver = driver_connection(connection)
                for write in group:
                    try:
                        results.append((write, _run_in_savepoint(connection, driver, write.fn), None))
                    except BaseException as error:
                        if not driver.in_transaction:
                            raise
                        results.append((write, None, self._storage_error(error)))
        except BaseException as error:  # noqa: BLE001  this thread writes for all callers and must go on
            # The whole transaction is lost. No caller was answered yet, so all of them get the error.
            results = [(write, None, self._storage_error(error)) for write in group]
            self._drop_connection()
        _answer(results)

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(*DRIVER_ERRORS):
                connection.close()

    def _storage_error(self, error: BaseException) -> BaseException:
        return _explain(error, self._path) if isinstance(error, DRIVER_ERRORS) else error


def _run_in_savepoint(connection: Connection, driver: Any, fn: Callable[[Connection], Any]) -> Any:
    # Straight to the driver: these three statements run around every write.
    driver.execute("SAVEPOINT one_write")
    try:
        result = fn(connection)
    except BaseException:
        # A full or broken disk may have undone the whole transaction already.
        if driver.in_transaction:
            driver.execute("ROLLBACK TO one_write")
            driver.execute("RELEASE one_write")
        raise
    driver.execute("RELEASE one_write")
    return result


def _answer(results: Sequence[WriteResult]) -> None:
    """Answers all callers of one event loop in one call: waking a loop costs more than most writes."""
    by_loop: defaultdict[asyncio.AbstractEventLoop, list[WriteResult]] = defaultdict(list)
    for result in results:
        by_loop[result[0].future.get_loop()].append(result)
    for loop, loop_results in by_loop.items():
        with suppress(RuntimeError):  # the loop is closed: no caller waits there
            loop.call_soon_threadsafe(_set_results, loop_results)


def _set_results(results: Sequence[WriteResult]) -> None:
    for write, value, error in results:
        if write.future.cancelled():
            continue
        if error is None:
            write.future.set_result(value)
        else:
            write.future.set_exception(error)


def _create_engine(path: Path, begin: str, *, size: int = 1, pragmas: tuple[str, ...] = (WAL, *PRAGMAS)) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        poolclass=QueuePool,
        pool_size=size,
        max_overflow=0,
        connect_args={"check_same_thread": False, "isolation_level": None},
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: Any) -> None:
        # The driver must not begin or commit transactions: this module does.
        connection.isolation_level = None
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def start(connection: Connection) -> None:
        driver_connection(connection).execute(begin)

    return engine


def _truncate_log(path: Path) -> bool:
    """Moves the write-ahead log into the database and empties it; False when readers or a writer prevent it."""
    with closing(sqlite3.connect(path, timeout=LONGEST_WIPE, isolation_level=None)) as connection:
        # Most of the work is done without locking anybody out; what is left is short.
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        try:
            (is_busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                return False
            raise
        return not is_busy


def _damage(connection: Connection) -> list[str]:
    """What SQLite finds wrong with its file: pages, indexes and required values."""
    rows = driver_connection(connection).execute(f"PRAGMA integrity_check({REPORTED_DAMAGE})").fetchall()
    return [f"the file is damaged: {finding}" for (text,) in rows if text != "ok" for finding in text.splitlines()]


def _check_permissions(path: Path) -> None:
    """Raises StorageReadOnly now: SQLite opens a read-only file without complaint and fails at the first write.

    Asks for the permission instead of opening the file: closing a file that SQLite has open in this process would
    release SQLite's locks.
    """
    effective = os.access in os.supports_effective_ids
    for file in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
        if file.exists() and not os.access(file, os.R_OK | os.W_OK, effective_ids=effective):
            raise StorageReadOnly(path=str(file))


@contextmanager
def _storage_errors(path: str) -> Iterator[None]:
    """Raises errors of the driver as errors that name a remedy."""
    try:
        yield
    except DRIVER_ERRORS as error:
        raise _explain(error, path) from error


def _explain(error: BaseException, path: str) -> StorageUnavailable:
    message = str(error.orig if isinstance(error, DBAPIError) else error)
    for reason, kind in REASONS:
        if reason in message.lower():
            return kind(path=path)
    return StorageUnavailable(message)
