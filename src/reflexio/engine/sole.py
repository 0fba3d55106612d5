"""One process does the work of a folder. The lock is the operating system's, so that a killed process holds none."""

import sqlite3
from pathlib import Path

from reflexio.errors import StorageReadOnly, StorageTaken


class Sole:
    """Held from the making until `release`. Raises StorageTaken when another holds it for longer than `patience`.

    It is SQLite's lock on an empty file: that one works wherever SQLite does.
    """

    def __init__(self, path: Path, *, patience: float) -> None:
        try:
            self._lock = sqlite3.connect(path, timeout=patience, isolation_level=None, check_same_thread=False)
        except sqlite3.OperationalError as error:
            raise StorageReadOnly(str(error), path=str(path)) from error
        try:
            self._lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            self._lock.close()
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                raise StorageTaken(path=str(path.parent)) from error
            raise StorageReadOnly(str(error), path=str(path)) from error

    def release(self) -> None:
        self._lock.close()
