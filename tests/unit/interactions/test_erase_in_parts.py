"""Erasing much is done in many short writes, goes on after a crash, and its receipt counts everything."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from reflexio.aggregation.withdraw import withdraw_user
from reflexio.interactions import erase
from reflexio.models.learning import Kind, Learning
from reflexio.ports.clock import SystemClock
from reflexio.ports.storage import LearningFilter, Store, Tx
from reflexio.retrieval.embedding_backlog import index_rows
from reflexio.storage.sqlite import SqliteDatabase, open_sqlite
from tests.builders import request, said

T = TypeVar("T")
CLOCK = SystemClock()
TURNS = 900


class Killed(BaseException):
    """The process has died."""


class DyingStore:
    """Dies at one of its writes, before or after it is durable."""

    def __init__(self, store: Store, *, write: int, is_durable: bool) -> None:
        self.org_id, self._store, self._left, self._is_durable = store.org_id, store, write, is_durable

    async def read(self, fn: Callable[[Tx], T]) -> T:
        return await self._store.read(fn)

    async def write(self, fn: Callable[[Tx], T]) -> T:
        self._left -= 1
        if self._left == 0 and not self._is_durable:
            raise Killed
        result = await self._store.write(fn)
        if self._left == 0:
            raise Killed
        return result


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[SqliteDatabase]:
    database = open_sqlite(tmp_path / "reflexio.db")
    await database.of("o").write(_fill)
    while await index_rows(database, 500):
        pass
    yield database
    await database.close()


def _fill(tx: Tx) -> None:
    for number in range(3):
        tx.requests.add(made := request(f"r{number}"))
        tx.interactions.add(made, said(*(f"tea {turn}" for turn in range(TURNS // 3))))
    tx.requests.add(other := request("other", user_id="bob"))
    tx.interactions.add(other, said("hello"))
    tx.learnings.add([Learning(Kind.PROFILE, f"likes tea {n}", user_id="ann", key=f"p{n}") for n in range(300)])


async def left(store: Store) -> dict[str, int]:
    leftovers = await store.read(lambda tx: tx.erasures.leftovers("ann"))
    return {table: count for table, count in leftovers.items() if count}


async def test_the_receipt_counts_all_parts(database: SqliteDatabase) -> None:
    store = database.of("o")
    before = await store.read(lambda tx: tx.erasures.count("ann"))
    done = await erase.delete_user(store, CLOCK, "ann", withdraw_user)
    assert done.receipt is not None
    assert done.receipt.counts == before
    assert (before["interactions"], before["interaction_words"], before["learnings"]) == (TURNS, TURNS, 300)
    assert done.deleted_counts["interactions"] == TURNS
    assert done.deleted_counts["profiles"] == 300
    assert await left(store) == {}
    assert (await erase.verify(store, "ann", done.receipt)).is_erased
    assert await store.read(lambda tx: tx.interactions.count("bob")) == 1


@pytest.mark.parametrize("is_durable", [True, False], ids=["after", "before"])
@pytest.mark.parametrize("write", [1, 2, 3, 4, 6, 9, 11])
async def test_a_call_that_is_repeated_after_a_crash_gets_a_receipt_of_everything(
    database: SqliteDatabase, write: int, *, is_durable: bool
) -> None:
    store = database.of("o")
    before = await store.read(lambda tx: tx.erasures.count("ann"))
    with pytest.raises(Killed):
        await erase.delete_user(DyingStore(store, write=write, is_durable=is_durable), CLOCK, "ann", withdraw_user)
    done = await erase.delete_user(store, CLOCK, "ann", withdraw_user)
    assert done.receipt is not None
    assert done.receipt.counts == before
    assert (await erase.verify(store, "ann", done.receipt)).is_erased


async def test_an_erasure_that_nobody_repeats_is_finished_in_the_background(database: SqliteDatabase) -> None:
    store = database.of("o")
    with pytest.raises(Killed):
        await erase.delete_user(DyingStore(store, write=6, is_durable=True), CLOCK, "ann", withdraw_user)
    assert await left(store)
    assert await database.erasing_organisations(9) == ["o"]
    assert await erase.finish_erasures(store, CLOCK, withdraw_user, begun_before=CLOCK.now() - 60) == 0
    assert await erase.finish_erasures(store, CLOCK, withdraw_user, begun_before=CLOCK.now()) == 1
    assert await left(store) == {}
    assert await database.erasing_organisations(9) == []


async def test_what_is_published_meanwhile_is_erased_too_and_belongs_to_the_receipt(database: SqliteDatabase) -> None:
    store = database.of("o")

    async def publish(*arguments: object, **more: object) -> int:
        count = await withdraw_user(*arguments, **more)  # type: ignore[arg-type]
        await store.write(_publish_late)
        return count

    done = await erase.delete_user(store, CLOCK, "ann", publish)
    assert await left(store) == {}
    assert done.deleted_counts["interactions"] >= TURNS


def _publish_late(tx: Tx) -> None:
    tx.requests.add(late := request("late"))
    tx.interactions.add(late, said("late"))
    tx.users.mark_unlearned("ann", 5)


async def test_profiles_and_turns_of_all_users_are_removed_in_parts(database: SqliteDatabase) -> None:
    store = database.of("o")
    done = await erase.delete_all_interactions(store)
    assert done.deleted_count == TURNS + 1
    assert await store.read(lambda tx: tx.requests.count()) == 0
    assert await store.read(lambda tx: tx.learnings.count(LearningFilter(Kind.PROFILE))) == 300
