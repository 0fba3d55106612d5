"""One thread that writes. All writes that wait are made in one transaction and become durable in one commit.

Each write runs inside a savepoint of its own, so one that fails takes nothing of the others with it.
"""

import asyncio
import queue
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine

from reflexio.errors import StorageUnavailable
from reflexio.storage.faults import FAULTS, explain

MOST = 256
"""Writes in one commit, so that nobody waits for a crowd."""


@dataclass(frozen=True)
class Write:
    """What to write, and who is told: somebody on a loop, or a thread."""

    fn: Callable[[Connection], Any]
    done: "Future[Any] | asyncio.Future[Any]"
    loop: asyncio.AbstractEventLoop | None = None

    def begin(self) -> bool:
        """False when the caller has given up."""
        return not self.done.cancelled() if self.loop else self.done.set_running_or_notify_cancel()  # type: ignore[union-attr]


Outcome = tuple[Write, Any, BaseException | None]


class Writer:
    def __init__(self, engine: Engine, path: str) -> None:
        self._engine = engine
        self._path = path
        self._waiting: queue.SimpleQueue[Write | None] = queue.SimpleQueue()
        self._connection: Connection | None = None
        self._closed = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="reflexio-writer", daemon=True)
        self._thread.start()

    def submit(self, fn: Callable[[Connection], Any]) -> "Future[Any]":
        done: Future[Any] = Future()
        self._put(Write(fn, done))
        return done

    async def write(self, fn: Callable[[Connection], Any]) -> Any:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()
        self._put(Write(fn, done, loop))
        return await done

    def _put(self, write: Write) -> None:
        with self._lock:
            if self._closed:
                raise StorageUnavailable("The database is closed.")
            self._waiting.put(write)

    def close(self) -> None:
        """Makes all that was submitted, then stops."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._waiting.put(None)
        self._thread.join()

    def _work(self) -> None:
        try:
            while group := self._next_group():
                self._commit([write for write in group if write.begin()])
        finally:
            self._drop_connection()

    def _next_group(self) -> list[Write]:
        """Everything that waits, or nothing once the writer is closed and all is made."""
        group: list[Write] = []
        first = self._waiting.get()
        while first is not None:
            group.append(first)
            if len(group) == MOST or self._waiting.empty():
                return group
            first = self._waiting.get()
        if group:
            self._waiting.put(None)
        return group

    def _commit(self, group: list[Write]) -> None:
        ended: list[Outcome] = []
        try:
            connection = self._connected()
            with connection.begin():
                driver: Any = connection.connection.driver_connection
                for write in group:
                    try:
                        ended.append((write, _in_savepoint(connection, driver, write.fn), None))
                    except BaseException as error:
                        if not driver.in_transaction:
                            raise
                        ended.append((write, None, self._explained(error)))
        except BaseException as error:  # noqa: BLE001  this thread writes for everybody and must go on
            # The whole transaction is gone: nobody was answered, so nobody is lied to.
            ended = [(write, None, self._explained(error)) for write in group]
            self._drop_connection()
        _tell(ended)

    def _connected(self) -> Connection:
        """One connection for all commits: to take it from the pool and back costs as much as a write."""
        if self._connection is None:
            self._connection = self._engine.connect()
        return self._connection

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(*FAULTS):
                connection.close()

    def _explained(self, failure: BaseException) -> BaseException:
        return explain(failure, self._path) if isinstance(failure, FAULTS) else failure


def _in_savepoint(connection: Connection, driver: Any, fn: Callable[[Connection], Any]) -> Any:
    # Straight to the driver: these three run around every write.
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


def _tell(ended: Sequence[Outcome]) -> None:
    """Everybody on one loop is told in one go: to wake a loop costs more than most writes."""
    by_loop: defaultdict[asyncio.AbstractEventLoop | None, list[Outcome]] = defaultdict(list)
    for outcome in ended:
        by_loop[outcome[0].loop].append(outcome)
    for loop, outcomes in by_loop.items():
        if loop is None:
            _settle(outcomes)
            continue
        with suppress(RuntimeError):  # the loop is closed: nobody waits there
            loop.call_soon_threadsafe(_settle, outcomes)


def _settle(outcomes: Sequence[Outcome]) -> None:
    for write, result, error in outcomes:
        if write.done.cancelled():
            continue
        if error is None:
            write.done.set_result(result)
        else:
            write.done.set_exception(error)
