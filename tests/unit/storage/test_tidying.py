"""What is removed hourly, and what stays."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reflexio.models.extraction import Spend
from reflexio.models.learning import Kind, Learning
from reflexio.ports.storage import FinishedStep, LearnedWindow, LearningFilter, LineageEvent, TextVectors, Tx
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


async def test_learned_windows_go_after_a_while_and_those_set_aside_stay(database: SqliteDatabase) -> None:
    store = database.of("default")

    def fill(tx: Tx) -> None:
        for key, state, at in (("old", "learned", 10), ("new", "learned", 90), ("aside", "set_aside", 10)):
            tx.windows.add(LearnedWindow(key, "ann", state, (1,), {}, created_at=at))
        tx.windows.keep_step(FinishedStep("ann", "old", "extract", "", (1,), {}, 10))
        tx.spending.add("2020-01-01", "learn", Spend("m", calls=1))
        tx.spending.add("2026-01-01", "learn", Spend("m", calls=1))

    await store.write(fill)
    assert await database.forget_learned(50) == 2
    left = [key for key in ("old", "new", "aside") if await store.read(lambda tx, key=key: tx.windows.get(key))]  # type: ignore[misc]
    assert left == ["new", "aside"]
    assert await store.read(lambda tx: tx.windows.finished_steps("ann")) == []
    assert await database.forget_spend("2025-01-01") == 1


async def test_marks_of_deleted_vectors_go_an_hour_later(database: SqliteDatabase) -> None:
    store = database.of("default")
    playbook = Learning(Kind.USER_PLAYBOOK, "tea", user_id="ann")
    (number,) = await store.write(lambda tx: tx.learnings.add([playbook], TextVectors("m", {"tea": b"0"})))
    await store.write(lambda tx: tx.learnings.remove(LearningFilter(Kind.USER_PLAYBOOK, ids=(number,))))

    def marks() -> int:
        with database._reading.connect() as connection:
            return int(connection.exec_driver_sql("SELECT count(*) FROM vectors").scalar_one())

    assert marks() == 1
    seen = await database.forget_dropped_vectors(0)
    assert marks() == 1
    await database.forget_dropped_vectors(seen)
    assert marks() == 0
