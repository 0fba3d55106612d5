"""One process does the work of a folder. The lock is the operating system's, so a killed process releases it."""

import os
import sqlite3
from pathlib import Path

from reflexio.errors import StorageReadOnly, StorageTaken


class ProcessLock:
    """Locks `path` while the context is open. Raises StorageTaken when another process still holds it after `timeout`
    seconds.

    It is SQLite's lock on an empty file, which works wherever SQLite does.
    """

    def __init__(self, path: Path, *, timeout: float = 1.0) -> None:
        self._path = path
        self._timeout = timeout
        self._connection: sqlite3.Connection | None = None

    def __enter__(self) -> None:
        try:
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
            connection = sqlite3.connect(
                self._path, timeout=self._timeout, isolation_level=None, check_same_thread=False
            )
        except (OSError, sqlite3.OperationalError) as error:
            raise StorageReadOnly(str(error), path=str(self._path)) from error
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            connection.close()
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                raise StorageTaken(path=str(self._path.parent)) from error
            raise StorageReadOnly(str(error), path=str(self._path)) from error
        self._connection = connection

    def __exit__(self, *_: object) -> None:
        if self._connection:
            self._connection.close()
            self._connection = None
