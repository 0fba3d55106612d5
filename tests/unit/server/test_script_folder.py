"""Where assistant scripts may be: anywhere for the one person of a server without keys, else in the named folder."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reflexio.app import script_folder
from reflexio.errors import InvalidRequest
from reflexio.organisations import keys
from reflexio.ports.clock import SystemClock
from reflexio.ports.storage import Database
from reflexio.providers.assistants import ANYWHERE
from reflexio.settings import Settings
from reflexio.storage.sqlite import open_sqlite


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = open_sqlite(tmp_path / "reflexio.db")
    yield database
    await database.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
async def test_a_server_without_keys_on_this_machine_runs_any_script(database: Database, host: str) -> None:
    assert await script_folder(Settings(host=host), database) == ANYWHERE


SHARED = {
    "all addresses": Settings(host="0.0.0.0"),  # noqa: S104
    "all addresses of IPv6": Settings(host="::"),
    "a name": Settings(host="reflexio.example.org"),
    "the operator's key": Settings(api_key="operator"),
    "keys are necessary": Settings(require_key=True),
}


@pytest.mark.parametrize("case", SHARED)
async def test_a_server_for_others_runs_none(database: Database, case: str) -> None:
    with pytest.raises(InvalidRequest, match="REFLEXIO_SCRIPTS"):
        await script_folder(SHARED[case], database)


async def test_a_key_of_any_organisation_ends_it_at_once(database: Database, tmp_path: Path) -> None:
    created = await keys.create(database, SystemClock(), "acme")
    with pytest.raises(InvalidRequest, match="REFLEXIO_SCRIPTS"):
        await script_folder(Settings(), database)
    assert await script_folder(Settings(scripts=tmp_path), database) == tmp_path
    await keys.revoke(database, SystemClock(), created.key.id)
    assert await script_folder(Settings(), database) == ANYWHERE
