"""Every storage backend passes the same suite. A new one is a line here."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from reflexio.ports.storage import Database, Store
from reflexio.storage.sqlite import open_sqlite

BACKENDS: dict[str, Callable[[Path], Database]] = {"sqlite": lambda folder: open_sqlite(folder / "reflexio.db")}


@pytest.fixture(params=BACKENDS)
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    database = BACKENDS[request.param](tmp_path)
    yield database
    await database.close()


@pytest.fixture
def store(database: Database) -> Store:
    return database.of("acme")
