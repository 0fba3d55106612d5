"""What the driver complains about, as errors that say what to do."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError

from reflexio.errors import StorageCorrupt, StorageFull, StorageReadOnly, StorageUnavailable

# SQLite tells its reasons only in words.
REASONS: tuple[tuple[str, type[StorageUnavailable]], ...] = (
    ("disk is full", StorageFull),
    ("not a database", StorageCorrupt),
    ("malformed", StorageCorrupt),
    ("readonly database", StorageReadOnly),
    ("unable to open", StorageReadOnly),
    ("permission denied", StorageReadOnly),
)


FAULTS = (DBAPIError, sqlite3.Error)
"""As SQLAlchemy hands them on, and as they come where a statement is handed straight to the driver."""


def explain(fault: BaseException, path: str) -> StorageUnavailable:
    told = str(fault.orig if isinstance(fault, DBAPIError) else fault)
    for reason, error in REASONS:
        if reason in told.lower():
            return error(path=path)
    return StorageUnavailable(told)


@contextmanager
def explained(path: str) -> Iterator[None]:
    try:
        yield
    except FAULTS as fault:
        raise explain(fault, path) from fault
