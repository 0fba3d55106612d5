"""One thread that writes. All writes that wait are made in one transaction and become durable in one commit.

Each write runs inside a savepoint of its own, so one that fails takes nothing of the others with it.
"""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from reflexio.errors import StorageUnavailable
from reflexio.storage.faults import explain

MOST = 256
"""Writes in one commit, so that nobody waits for a crowd."""


@dataclass(frozen=True)
class Write:
    fn: Callable[[Connection], Any]
    done: "Future[Any]" = field(default_factory=Future)


class Writer:
    def __init__(self, engine: Engine, path: str) -> None:
        self._engine = engine
        self._path = path
        self._waiting: queue.SimpleQueue[Write | None] = queue.SimpleQueue()
        self._closed = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="reflexio-writer", daemon=True)
        self._thread.start()

    def submit(self, fn: Callable[[Connection], Any]) -> "Future[Any]":
        write = Write(fn)
        with self._lock:
            if self._closed:
                raise StorageUnavailable("The database is closed.")
            self._waiting.put(write)
        return write.done

    def close(self) -> None:
        """Makes all that was submitted, then stops."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._waiting.put(None)
        self._thread.join()

    def _work(self) -> None:
        while group := self._next_group():
            self._commit([write for write in group if write.done.set_running_or_notify_cancel()])

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
        made: list[tuple[Write, Any]] = []
        failed: list[tuple[Write, BaseException]] = []
        try:
            with self._engine.begin() as connection:
                driver: Any = connection.connection.driver_connection
                for write in group:
                    try:
                        made.append((write, _in_savepoint(connection, driver, write.fn)))
                    except BaseException as error:
                        if not driver.in_transaction:
                            raise
                        failed.append((write, error))
        except BaseException as error:  # noqa: BLE001  this thread writes for everybody and must go on
            # The whole transaction is gone: nobody was answered, so nobody is lied to.
            made, failed = [], [(write, error) for write in group]
        for write, result in made:
            write.done.set_result(result)
        for write, failure in failed:
            write.done.set_exception(self._explained(failure))

    def _explained(self, failure: BaseException) -> BaseException:
        return explain(failure, self._path) if isinstance(failure, DBAPIError) else failure


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
