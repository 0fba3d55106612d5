"""What is removed hourly, and what stays."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reflexio.models.learning import Kind, Learning
from reflexio.ports.storage import LearningFilter, LineageEvent
from reflexio.storage.database import TIDIED_AT_ONCE
from reflexio.storage.sqlite import SqliteDatabase, open_sqlite


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[SqliteDatabase]:
    opened = open_sqlite(tmp_path / "reflexio.db")
    yield opened
    await opened.close()


async def test_expired_profiles_go_batch_after_batch_and_their_lineage_with_them(database: SqliteDatabase) -> None:
    store = database.of("default")
    expired = [
        Learning(Kind.PROFILE, f"Fact {number}", key=f"p{number}", user_id="ann", expires_at=1000)
        for number in range(TIDIED_AT_ONCE + 1)
    ]
    alive = Learning(Kind.PROFILE, "Vegetarian", key="alive", user_id="ann", expires_at=3000)
    ids = await store.write(lambda tx: tx.learnings.add([*expired, alive]))
    await store.write(lambda tx: tx.learnings.note(*(LineageEvent(each, Kind.PROFILE, "edited", 1) for each in ids)))
    assert await database.forget_orphans(2000) == 0
    assert await database.forget_profiles(2000) == TIDIED_AT_ONCE + 1
    assert await database.forget_orphans(2000) == 0, "deleting a learning removes its lineage"
    assert await store.read(lambda tx: tx.learnings.lineage(ids[0])) == []
    left = await store.read(lambda tx: tx.learnings.get(LearningFilter(Kind.PROFILE, user_id="ann")))
    assert left is not None
    assert left.content == "Vegetarian"
    assert len(await store.read(lambda tx: tx.learnings.lineage(ids[-1]))) == 1
