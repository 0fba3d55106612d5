"""SQLite: one file, one writer thread, several readers.

WAL lets readers go on while the writer commits; synchronous=FULL makes a commit survive a power cut.
"""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event, text
from sqlalchemy.pool import QueuePool

from reflexio.errors import StorageReadOnly
from reflexio.ports.storage import Keys, Pool, Tx, Vectors, Waiting
from reflexio.storage.documents import configured, forget_receipts
from reflexio.storage.faults import explained
from reflexio.storage.hot import driver
from reflexio.storage.jobs import SqlJournal
from reflexio.storage.keys import SqlKeys
from reflexio.storage.migrate import migrate
from reflexio.storage.pools import pools_with_news
from reflexio.storage.search.shelves import Shelves
from reflexio.storage.tx import SqlTx
from reflexio.storage.users import backlog
from reflexio.storage.vectors import SqlVectors
from reflexio.storage.writer import Writer

T = TypeVar("T")
READERS = 4
WAL = "journal_mode=WAL"
PRAGMAS = (
    "synchronous=FULL",
    "foreign_keys=ON",
    "busy_timeout=10000",
    "cache_size=-32000",
    "temp_store=MEMORY",
)


def _engine(path: Path, begin: str, *, size: int = 1, pragmas: tuple[str, ...] = (WAL, *PRAGMAS)) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        poolclass=QueuePool,
        pool_size=size,
        max_overflow=0,
        connect_args={"check_same_thread": False, "isolation_level": None},
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: Any) -> None:
        # The driver must not begin or commit on its own: transactions are ours.
        connection.isolation_level = None
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def start(connection: Connection) -> None:
        driver(connection).execute(begin)

    return engine


class SqliteStore:
    def __init__(self, database: "SqliteDatabase", org_id: str) -> None:
        self._database = database
        self.org_id = org_id

    async def read(self, fn: Callable[[Tx], T]) -> T:
        return await self._database.read(lambda connection: fn(SqlTx(connection, self.org_id, self._database.shelves)))

    async def write(self, fn: Callable[[Tx], T]) -> T:
        return await self._database.write(lambda connection: fn(SqlTx(connection, self.org_id, self._database.shelves)))


class SqliteDatabase:
    """Every organisation in one file. Made by `open_sqlite`."""

    type = "sqlite"

    def __init__(self, path: Path, writing: Engine, reading: Engine) -> None:
        self.label = str(path)
        self.shelves = Shelves()
        self._writing = writing
        self._reading = reading
        self._writer = Writer(writing, self.label)
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="reflexio-reader")
        self.journal = SqlJournal(self)

    def of(self, org_id: str) -> SqliteStore:
        return SqliteStore(self, org_id)

    async def read(self, fn: Callable[[Connection], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._look, fn)

    def _look(self, fn: Callable[[Connection], T]) -> T:
        with explained(self.label), self._reading.connect() as connection:
            # All that is read is of one moment, also where a statement is handed straight to the driver.
            connection.begin()
            return fn(connection)

    async def write(self, fn: Callable[[Connection], T]) -> T:
        result: T = await self._writer.write(fn)
        return result

    async def read_keys(self, fn: Callable[[Keys], T]) -> T:
        return await self.read(lambda connection: fn(SqlKeys(connection)))

    async def write_keys(self, fn: Callable[[Keys], T]) -> T:
        return await self.write(lambda connection: fn(SqlKeys(connection)))

    async def read_vectors(self, fn: Callable[[Vectors], T]) -> T:
        return await self.read(lambda connection: fn(SqlVectors(connection)))

    async def write_vectors(self, fn: Callable[[Vectors], T]) -> T:
        return await self.write(lambda connection: fn(SqlVectors(connection)))

    async def warm(self, model: str) -> None:
        for shelf in await self.read(lambda connection: self.shelves.stored(connection, model)):
            while not await self.read(shelf.catch_up):
                pass

    async def backlog(self, limit: int, *, after: Waiting | None = None) -> list[Waiting]:
        return await self.read(lambda connection: backlog(connection, limit, after))

    async def pools(self, limit: int, *, after: Pool | None = None) -> list[Pool]:
        return await self.read(lambda connection: pools_with_news(connection, limit, after))

    async def configured(self) -> list[str]:
        return await self.read(configured)

    async def forget_receipts(self, before: int) -> int:
        return await self.write(lambda connection: forget_receipts(connection, before))

    async def ping(self) -> None:
        await self.read(lambda connection: connection.execute(text("SELECT 1")))

    async def close(self) -> None:
        await asyncio.to_thread(self._writer.close)
        await asyncio.to_thread(self._readers.shutdown)
        self._reading.dispose()
        self._writing.dispose()


def open_sqlite(path: Path) -> SqliteDatabase:
    """Opens or makes the database, brought to today's schema."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            # Conversations are private, and so are keys: nobody else on the machine reads them.
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise StorageReadOnly(str(error), path=str(path)) from error
    _must_be_writable(path)
    with explained(str(path)):
        _bring_up_to_date(path)
        writing = _engine(path, "BEGIN IMMEDIATE")
        # Connects once, alone: readers and writer must not race for the change to WAL.
        writing.connect().close()
    return SqliteDatabase(path, writing, _engine(path, "BEGIN", size=READERS))


def _must_be_writable(path: Path) -> None:
    """SQLite opens a file that it may only read without a word, and says so when something is to be written.

    Asked, not tried: to close a file that SQLite has open in this process would take its locks away.
    """
    effective = os.access in os.supports_effective_ids
    for file in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
        if file.exists() and not os.access(file, os.R_OK | os.W_OK, effective_ids=effective):
            raise StorageReadOnly(path=str(file))


def _bring_up_to_date(path: Path) -> None:
    """Before WAL, which changes the file: one that is not ours stays as it is."""
    engine = _engine(path, "BEGIN IMMEDIATE", pragmas=PRAGMAS)
    try:
        with engine.begin() as connection:
            migrate(connection, str(path))
    finally:
        engine.dispose()
