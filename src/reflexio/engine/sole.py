"""One process does the work of a folder. The lock is the operating system's, so that a killed process holds none."""

import sqlite3
from pathlib import Path
from types import TracebackType

from reflexio.errors import StorageReadOnly, StorageTaken


class Sole:
    """Held from entering to leaving. Raises StorageTaken when another holds it for longer than `patience` seconds.

    It is SQLite's lock on an empty file: that one works wherever SQLite does.
    """

    def __init__(self, path: Path, *, patience: float = 1.0) -> None:
        self._path = path
        self._patience = patience
        self._lock: sqlite3.Connection | None = None

    def __enter__(self) -> None:
        try:
            lock = sqlite3.connect(self._path, timeout=self._patience, isolation_level=None, check_same_thread=False)
        except sqlite3.OperationalError as error:
            raise StorageReadOnly(str(error), path=str(self._path)) from error
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            lock.close()
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                raise StorageTaken(path=str(self._path.parent)) from error
            raise StorageReadOnly(str(error), path=str(self._path)) from error
        self._lock = lock

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lock:
            self._lock.close()
            self._lock = None
