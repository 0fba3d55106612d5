"""Every storage backend passes the same suite. A new one is a line here."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from reflexio.ports.storage import Database, Store
from reflexio.storage.postgres import open_postgres
from reflexio.storage.sqlite import open_sqlite

OpenDatabase = Callable[[], Database]


@pytest.fixture(params=["sqlite", "postgresql"])
def open_again(request: pytest.FixtureRequest, tmp_path: Path) -> OpenDatabase:
    """Opens the test's own database, which begins empty; each call opens the same one."""
    if request.param == "sqlite":
        return lambda: open_sqlite(tmp_path / "reflexio.db")
    url = request.getfixturevalue("empty_postgres")
    return lambda: open_postgres(url)


@pytest.fixture
async def database(open_again: OpenDatabase) -> AsyncIterator[Database]:
    database = open_again()
    yield database
    await database.close()


@pytest.fixture
def store(database: Database) -> Store:
    return database.of("acme")
