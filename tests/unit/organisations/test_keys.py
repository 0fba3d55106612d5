"""Keys of one organisation, as somebody who belongs to it may see and revoke them."""

from pathlib import Path

import pytest

from reflexio.errors import NotFound
from reflexio.organisations import keys
from reflexio.ports.clock import SystemClock
from reflexio.storage.sqlite import open_sqlite

CLOCK = SystemClock()


async def test_keys_of_another_organisation_are_neither_listed_nor_revoked(tmp_path: Path) -> None:
    database = open_sqlite(tmp_path / "reflexio.db")
    mine = (await keys.create(database, CLOCK, "mine")).key
    other = (await keys.create(database, CLOCK, "other")).key
    assert await keys.of_organisation(database, "mine") == [mine]
    with pytest.raises(NotFound):
        await keys.revoke(database, CLOCK, other.id, org_id="mine")
    assert await keys.of_organisation(database, "other") == [other]
    await keys.revoke(database, CLOCK, mine.id, org_id="mine")
    assert await keys.of_organisation(database, "mine") == []
    await database.close()
