"""What the driver complains about, as errors that say what to do."""

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


def explain(fault: DBAPIError, path: str) -> StorageUnavailable:
    words = str(fault.orig).lower()
    for reason, error in REASONS:
        if reason in words:
            return error(path=path)
    return StorageUnavailable(str(fault.orig))


@contextmanager
def explained(path: str) -> Iterator[None]:
    try:
        yield
    except DBAPIError as fault:
        raise explain(fault, path) from fault
