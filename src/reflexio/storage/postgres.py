"""Runs reads and writes in PostgreSQL, in threads, each in one transaction that sees one moment.

Writers of several processes meet in the database: a transaction that PostgreSQL refuses because another changed the
same rows first is run again. Each transaction names its organisation, and row security shows it no other rows.
"""

import asyncio
import logging
import random
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

import psycopg
from psycopg import errors as pg
from psycopg import sql as quoting
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import Connection, Engine, QueuePool, create_engine, event, text
from sqlalchemy.exc import DBAPIError

from reflexio.errors import InvalidRequest, StorageUnavailable
from reflexio.storage.compiled import driver_connection
from reflexio.storage.database import SqlDatabase
from reflexio.storage.migrate import migrate
from reflexio.storage.postgres_schema import EVERY_ORGANISATION
from reflexio.storage.vectors.pgvector import PgVectorSearch

log = logging.getLogger("reflexio")

T = TypeVar("T")
CONNECTIONS = 10
"""Connections of one process at most. Requests wait for a free one."""
CONNECT_SECONDS = 4
REPETITIONS = 20
"""How often a refused transaction is run again, each time after a longer pause."""
LONGEST_PAUSE = 0.25
REFUSED = (pg.SerializationFailure, pg.DeadlockDetected)
LISTEN_SECONDS = 0.5
"""How often the listening thread looks whether it shall end."""
MIGRATION_LOCK = 0x7265666C6578
TOO_FEW_CONNECTIONS = (
    "PostgreSQL has no free connection; raise max_connections, or run fewer servers and workers"
    f" (each takes up to {CONNECTIONS})."
)
SETTINGS = "set_config('jit', 'off', true), set_config('idle_in_transaction_session_timeout', '120s', true)"


def open_postgres(url: str, *, max_daily_tokens: int | None = None) -> "PostgresDatabase":
    """Connects, and brings the database to the current schema; of several servers that start, one does."""
    engine = _create_engine(url)
    try:
        with engine.connect() as connection:
            connection.info["org"], connection.info["mode"] = EVERY_ORGANISATION, "READ WRITE"
            with connection.begin():
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": MIGRATION_LOCK})
                connection.execute(text("CREATE EXTENSION IF NOT EXISTS vector"))
                migrate(connection, "PostgreSQL")
    except (DBAPIError, psycopg.Error) as error:
        engine.dispose()
        raise explain(error) from error
    except BaseException:
        engine.dispose()
        raise
    return PostgresDatabase(url, engine, max_daily_tokens)


class NotBegun(StorageUnavailable):
    """PostgreSQL ended the connection before the transaction began; try again."""


class PostgresDatabase(SqlDatabase):
    """Every organisation in one PostgreSQL database. Opened by `open_postgres`."""

    type = "postgresql"

    def __init__(self, url: str, engine: Engine, max_daily_tokens: int | None = None) -> None:
        super().__init__("postgresql", max_daily_tokens)  # callers see the label: no address, no password
        self._engine = engine
        self._threads = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="reflexio-postgres")
        self.changes = self._changes = PostgresChanges(url)

    async def read(self, fn: Callable[[Connection], T], *, org_id: str | None = None) -> T:
        return await self._in_thread(fn, org_id, "READ ONLY")

    async def write(self, fn: Callable[[Connection], T], *, org_id: str | None = None) -> T:
        return await self._in_thread(fn, org_id, "READ WRITE")

    async def _in_thread(self, fn: Callable[[Connection], T], org_id: str | None, mode: str) -> T:
        org = EVERY_ORGANISATION if org_id is None else org_id
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._repeat, fn, org, mode)

    def _repeat(self, fn: Callable[[Connection], T], org: str, mode: str) -> T:
        for repetition in range(REPETITIONS):
            try:
                return self._run(fn, org, mode)
            except NotBegun:  # PostgreSQL closed an idle connection; the pool replaces all of them
                continue
            except (DBAPIError, psycopg.Error) as error:
                if not isinstance(_cause(error), REFUSED):
                    raise explain(error) from error
                time.sleep(random.uniform(0, min(LONGEST_PAUSE, 0.002 * 2**repetition)))
        raise StorageUnavailable("Too many callers changed the same rows at the same time; try again.")

    def _run(self, fn: Callable[[Connection], T], org: str, mode: str) -> T:
        with self._connect(org, mode) as connection, connection.begin():
            return fn(connection)

    def _connect(self, org: str, mode: str) -> Connection:
        connection = self._engine.connect()
        connection.info["org"], connection.info["mode"] = org, mode
        return connection

    def vectors(self, connection: Connection) -> PgVectorSearch:
        return PgVectorSearch(connection)

    async def warm(self, model: str) -> None:
        """Nothing is copied into memory."""

    async def wipe(self) -> bool:
        """PostgreSQL's autovacuum overwrites deleted rows; its archive and its backups are the operator's."""
        return True

    async def close(self) -> None:
        await asyncio.to_thread(self._changes.close)
        await asyncio.to_thread(self._threads.shutdown)
        self._engine.dispose()


class PostgresChanges:
    """Tells when a job was enqueued or has ended anywhere: those writes notify. Other writes are looked for.

    Listening needs a connection of its own, straight to PostgreSQL: behind pgbouncer in transaction mode nothing is
    heard, and those who wait look again after their time.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._heard = 0
        self._waiting: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._is_closed = False

    @property
    def version(self) -> int:
        """Changes every second: publishing notifies nobody, because that costs up to a third of its speed."""
        return int(time.monotonic())

    async def wait(self, seen: int, seconds: float) -> int:
        self._listen()
        event = asyncio.Event()
        entry = asyncio.get_running_loop(), event
        self._waiting.add(entry)
        try:
            if self._heard == seen:
                with suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await event.wait()
        finally:
            self._waiting.discard(entry)
        return self._heard

    def close(self) -> None:
        self._is_closed = True
        if self._thread:
            self._thread.join()

    def _listen(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._hear, name="reflexio-listen", daemon=True)
                self._thread.start()

    def _hear(self) -> None:
        while not self._is_closed:
            try:
                with psycopg.connect(self._url, autocommit=True, connect_timeout=CONNECT_SECONDS) as connection:
                    connection.execute("LISTEN reflexio")
                    while not self._is_closed:
                        if any(True for _ in connection.notifies(timeout=LISTEN_SECONDS, stop_after=1)):
                            self._tell()
            except psycopg.Error as error:
                log.warning("listening to PostgreSQL begins again: %s", explain(error))
                time.sleep(LISTEN_SECONDS)

    def _tell(self) -> None:
        self._heard += 1
        for loop, waiter in list(self._waiting):
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(waiter.set)


def _create_engine(url: str) -> Engine:
    try:
        conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise InvalidRequest("REFLEXIO_DATABASE is no address of PostgreSQL: postgresql://user@host/name.") from error

    def connect() -> "psycopg.Connection[Any]":
        return psycopg.connect(url, autocommit=True, connect_timeout=CONNECT_SECONDS, application_name="reflexio")

    engine = create_engine(
        "postgresql+psycopg://",
        creator=connect,
        poolclass=QueuePool,
        pool_size=CONNECTIONS,
        max_overflow=0,
        pool_pre_ping=False,
        isolation_level="AUTOCOMMIT",
    )

    @event.listens_for(engine, "begin")
    def start(connection: Connection) -> None:
        # One message to the server: the transaction, its organisation, its settings.
        org = quoting.quote(connection.info.get("org", ""))
        mode = connection.info.get("mode", "READ WRITE")
        begin = f"BEGIN ISOLATION LEVEL REPEATABLE READ {mode}"
        driver = driver_connection(connection)
        try:
            driver.execute(f"{begin}; SELECT set_config('reflexio.org', {org}, true), {SETTINGS}")
        except psycopg.OperationalError as error:
            if not driver.closed:
                raise
            connection.invalidate()
            raise NotBegun from error

    return engine


CONNECTION_REMEDIES: tuple[tuple[str, str], ...] = (
    (r"password authentication failed", "PostgreSQL refuses the user or the password of REFLEXIO_DATABASE."),
    (r"no password supplied", "PostgreSQL wants a password: put it into REFLEXIO_DATABASE or into PGPASSWORD."),
    (r"role .* does not exist", "PostgreSQL does not know the user of REFLEXIO_DATABASE: run CREATE ROLE ... LOGIN."),
    (r"database .* does not exist", "PostgreSQL has no such database: run CREATE DATABASE."),
    (r"too many clients|connection slots", TOO_FEW_CONNECTIONS),
)
"""By words of the message: failures to connect have no code."""
NO_PGVECTOR = "PostgreSQL has no pgvector; install the extension, in Debian the package postgresql-18-pgvector."
REMEDIES: dict[str, str] = {
    "53100": "The disk of PostgreSQL is full; free some space and try again. Nothing that was confirmed is lost.",
    "53300": TOO_FEW_CONNECTIONS,
    "25006": "This PostgreSQL only reads: REFLEXIO_DATABASE names a replica. Name the primary server.",
    "0A000": NO_PGVECTOR,
    "58P01": NO_PGVECTOR,
    "42501": "The user of REFLEXIO_DATABASE lacks a privilege: make it the owner of the database, and let an"
    " administrator run CREATE EXTENSION vector there.",
}
"""By PostgreSQL's code."""


def explain(error: BaseException) -> StorageUnavailable:
    """The error with a remedy. PostgreSQL's own words go to the log, as the cause: they may tell addresses."""
    cause = _cause(error)
    code = getattr(cause, "sqlstate", None) or ""
    if remedy := REMEDIES.get(code):
        return StorageUnavailable(remedy)
    if not isinstance(cause, psycopg.OperationalError):
        return StorageUnavailable(f"PostgreSQL reported an error ({code or type(cause).__name__}).")
    remedies = (remedy for words, remedy in CONNECTION_REMEDIES if re.search(words, str(cause)))
    unreachable = "PostgreSQL does not answer; check that it runs and the address in REFLEXIO_DATABASE."
    return StorageUnavailable(next(remedies, unreachable))


def _cause(error: BaseException) -> BaseException:
    return error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
