"""Long work: one at a time, told truly, stopped when asked, taken over when its process died."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from reflexio.aggregation.withdraw import withdraw_user
from reflexio.errors import Conflict, NotFound
from reflexio.interactions import erase
from reflexio.jobs import operations
from reflexio.models.operation import ABANDONED_AFTER, Operation, OperationStatus, OperationStatusInfo
from reflexio.ports.clock import SystemClock
from reflexio.ports.storage import Store, Tx
from reflexio.storage.sqlite import open_sqlite

RERUN = "profile_generation"


class Clock:
    def __init__(self, at: int) -> None:
        self.at = at

    def now(self) -> int:
        return self.at


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    database = open_sqlite(tmp_path / "reflexio.db")
    yield database.of("default")
    await database.close()


def begin(operation_id: str = "a", now: int = 100, service: str = RERUN) -> Callable[[Tx], Operation]:
    return lambda tx: operations.begin(tx, service, operation_id, {"user_id": "ann"}, now, total_users=4)


async def told(store: Store, now: int = 100, service: str = RERUN) -> OperationStatusInfo:
    def look(tx: Tx) -> OperationStatusInfo:
        found = operations.latest(tx, service)
        assert found is not None
        return operations.describe(tx, found, now)

    return await store.read(look)


async def test_progress_is_told_as_it_is(store: Store) -> None:
    def work(tx: Tx) -> None:
        operations.progress(tx, "a", 101, current_user_id="ann")
        operations.record_user(tx, "a", "ann", 102, stats={"total_generated": 2})
        operations.record_user(tx, "a", "bob", 103, error="the model refused", stats={"total_generated": 1})
        operations.progress(tx, "a", 104, current_user_id="cid", total_users=8)

    await store.write(begin())
    await store.write(work)
    found = await told(store)
    assert found.model_dump(mode="json", exclude_none=True) == {
        "service_name": RERUN,
        "status": "in_progress",
        "started_at": 100,
        "total_users": 8,
        "processed_users": 1,
        "failed_users": 1,
        "current_user_id": "cid",
        "processed_user_ids": ["ann"],
        "failed_user_ids": [{"user_id": "bob", "error": "the model refused"}],
        "request_params": {"user_id": "ann", "operation_id": "a"},
        "stats": {"total_generated": 3},
        "progress_percentage": 25.0,
    }
    await store.write(lambda tx: operations.finish(tx, "a", 110))
    found = await told(store)
    assert (found.status, found.completed_at, found.progress_percentage) == ("completed", 110, 100)
    assert found.current_user_id is None


async def test_a_second_one_of_the_service_is_a_conflict_that_names_the_first(store: Store) -> None:
    await store.write(begin("a"))
    await store.write(begin("other", service="playbook_generation"))
    with pytest.raises(Conflict, match="Another 'profile_generation' is already in progress: operation 'a'"):
        await store.write(begin("b", 101))
    await store.write(lambda tx: operations.finish(tx, "a", 102))
    assert (await store.write(begin("b", 103))).is_running


async def test_the_same_id_is_the_same_operation(store: Store) -> None:
    await store.write(begin())
    await store.write(lambda tx: operations.record_user(tx, "a", "ann", 101))
    assert (await store.write(begin(now=900))).processed_users == 1
    await store.write(lambda tx: operations.finish(tx, "a", 901))
    assert (await store.write(begin(now=902))).status is OperationStatus.COMPLETED


@pytest.mark.parametrize("now", [100 + ABANDONED_AFTER, 100 - ABANDONED_AFTER], ids=["later", "clock set back"])
async def test_one_that_gives_no_sign_of_life_is_told_as_failed_and_taken_over(store: Store, now: int) -> None:
    await store.write(begin("dead"))
    assert (await told(store, now)).status == "failed"
    assert "start it again" in str((await told(store, now)).error_message)

    await store.write(begin("next", now))

    dead = await store.read(lambda tx: operations.get(tx, "dead"))
    assert (dead.status, dead.completed_at) == (OperationStatus.FAILED, now)
    assert (await told(store, now)).request_params["operation_id"] == "next"
    with pytest.raises(Conflict, match="'dead' has ended: failed"):
        await store.write(lambda tx: operations.progress(tx, "dead", now + 1))
    late = await store.write(lambda tx: operations.finish(tx, "dead", now + 2))
    assert late.status is OperationStatus.FAILED


async def test_one_that_went_on_after_a_long_sleep_is_in_progress_again(store: Store) -> None:
    await store.write(begin())
    late = 100 + 2 * ABANDONED_AFTER
    await store.write(lambda tx: operations.progress(tx, "a", late))
    assert (await told(store, late)).status == "in_progress"
    with pytest.raises(Conflict):
        await store.write(begin("b", late + 1))


async def test_a_sign_of_life_keeps_it(store: Store) -> None:
    await store.write(begin())
    almost = 100 + ABANDONED_AFTER - 1
    assert (await told(store, almost)).status == "in_progress"
    with pytest.raises(Conflict):
        await store.write(begin("b", almost))
    await store.write(lambda tx: operations.record_user(tx, "a", "ann", almost))
    with pytest.raises(Conflict):
        await store.write(begin("b", almost + ABANDONED_AFTER - 1))


async def test_a_user_told_again_counts_once_and_may_only_get_better(store: Store) -> None:
    await store.write(begin())

    async def counts(error: str) -> tuple[int, int, int]:
        done = await store.write(lambda tx: operations.record_user(tx, "a", "ann", 101, error=error, stats={"n": 1}))
        return done.processed_users, done.failed_users, done.stats["n"]

    assert await counts("no") == (0, 1, 1)
    assert await counts("no") == (0, 1, 1)
    assert await counts("") == (1, 0, 2)
    assert await counts("") == (1, 0, 2)


async def test_cancelling_is_a_request_that_the_work_reads(store: Store) -> None:
    await store.write(begin())
    await store.write(begin("other", service="playbook_generation"))
    asked = await store.write(lambda tx: operations.cancel(tx, RERUN, 101))
    assert [each.id for each in asked] == ["a"]
    assert (await told(store)).status == "in_progress"
    assert (await store.write(lambda tx: operations.progress(tx, "a", 102))).cancel_requested
    assert not (await store.write(lambda tx: operations.progress(tx, "other", 102))).cancel_requested
    await store.write(lambda tx: operations.stop(tx, "a", 103))
    assert (await told(store)).status == "cancelled"
    assert await store.write(lambda tx: operations.cancel(tx, RERUN, 104)) == []


async def test_cancelling_nothing_by_name_asks_all_and_ends_what_was_abandoned(store: Store) -> None:
    await store.write(begin())
    late = 100 + ABANDONED_AFTER
    await store.write(begin("b", late, service="playbook_generation"))
    asked = await store.write(lambda tx: operations.cancel(tx, None, late))
    assert [(each.id, each.status) for each in asked] == [
        ("a", OperationStatus.CANCELLED),
        ("b", OperationStatus.IN_PROGRESS),
    ]


async def test_a_failure_is_told(store: Store) -> None:
    await store.write(begin())
    await store.write(lambda tx: operations.fail(tx, "a", "disk full", 105))
    found = await told(store)
    assert (found.status, found.error_message, found.completed_at) == ("failed", "disk full", 105)


async def test_unknown_operations_are_not_found(store: Store) -> None:
    for act in (operations.progress, operations.finish, operations.stop):
        with pytest.raises(NotFound, match="no operation 'x'"):
            await store.write(lambda tx, act=act: act(tx, "x", 1))  # type: ignore[misc]
    with pytest.raises(NotFound):
        await store.read(lambda tx: operations.get(tx, "x"))


async def test_only_the_last_operations_of_a_service_are_kept(store: Store) -> None:
    for number in range(operations.KEPT + 3):
        await store.write(begin(str(number)))
        await store.write(lambda tx, number=number: operations.finish(tx, str(number), 101))  # type: ignore[misc]
    kept = [n for n in range(operations.KEPT + 3) if await store.read(lambda tx, n=n: tx.operations.get(str(n)))]  # type: ignore[misc]
    assert kept == list(range(3, operations.KEPT + 3))


async def test_what_is_told_stays_small_however_many_users_there_are(store: Store) -> None:
    def work(tx: Tx) -> None:
        for number in range(operations.USERS_SHOWN + 5):
            operations.record_user(tx, "a", f"user {number}", 101)

    await store.write(begin())
    await store.write(work)
    found = await told(store)
    assert found.processed_users == operations.USERS_SHOWN + 5
    assert found.processed_user_ids == [f"user {number}" for number in range(5, operations.USERS_SHOWN + 5)]

    async def stop() -> bool:
        return False

    (news,) = [each async for each in operations.follow(store, Clock(100), "a", stop)]
    assert news is not None
    assert news.processed_users == operations.USERS_SHOWN + 5
    assert news.processed_user_ids == found.processed_user_ids[-operations.USERS_STREAMED :]


async def test_an_erased_user_is_named_no_more_and_still_counted(store: Store) -> None:
    await store.write(begin())
    await store.write(lambda tx: operations.record_user(tx, "a", "ann", 101))
    await store.write(lambda tx: operations.record_user(tx, "a", "bob", 101))
    await erase.delete_user(store, SystemClock(), "ann", withdraw_user)
    found = await told(store)
    assert (found.processed_users, found.processed_user_ids) == (2, ["bob"])


async def test_following_tells_each_change_and_ends_with_the_operation(store: Store) -> None:
    await store.write(begin())
    acts: list[Callable[[Tx], object]] = [
        lambda tx: operations.record_user(tx, "a", "ann", 101),
        lambda tx: operations.progress(tx, "a", 102),
        lambda tx: operations.finish(tx, "a", 103),
    ]

    async def pause() -> bool:
        await store.write(acts.pop(0))
        return True

    news = [each async for each in operations.follow(store, Clock(100), "a", pause)]
    seen = [(each.status.value, each.processed_users) if each else None for each in news]
    assert seen == [("in_progress", 0), ("in_progress", 1), None, ("completed", 1)]


async def test_following_ends_when_it_is_told_to_or_the_process_died(store: Store) -> None:
    clock = Clock(100)

    async def stop() -> bool:
        return False

    async def die() -> bool:
        clock.at += ABANDONED_AFTER
        return True

    await store.write(begin())
    assert len([each async for each in operations.follow(store, clock, "a", stop)]) == 1
    *_, last = [each async for each in operations.follow(store, clock, "a", die)]
    assert last is not None
    assert last.status == "failed"
    assert [each async for each in operations.follow(store, clock, "unknown", stop)] == []


async def test_cancelling_ends_work_that_waits_for_an_answer_that_never_comes(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "CANCELLED_WITHIN", 0.001)
    await store.write(begin())
    run = operations.OperationRun(store, Clock(101), "a", lambda tx, now: True)
    hangs = asyncio.Event()

    async def hang() -> bool:
        hangs.set()
        await asyncio.Event().wait()
        return True

    running = asyncio.create_task(run.run(hang))
    await hangs.wait()
    await store.write(lambda tx: operations.cancel(tx, RERUN, 102))
    assert await running == {"complete": False}
    assert (await told(store)).status == "cancelled"
