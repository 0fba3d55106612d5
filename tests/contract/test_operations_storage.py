"""What every storage backend promises about operations, stalls and spend, and about moving learnings."""

from dataclasses import replace

import pytest

from reflexio.errors import Conflict
from reflexio.models.extraction import Spend
from reflexio.models.learning import Kind, Learning, Status
from reflexio.models.operation import Operation, OperationStatus, UserProgress
from reflexio.models.usage import Spent, Stall
from reflexio.ports.storage import Database, LearningFilter, LineageEvent, Store, Tx

RERUN = Operation("a", "rerun", {"user_id": "ann", "deep": [1, None]}, started_at=5, heartbeat_at=6)


async def add(store: Store, *rows: Operation) -> None:
    def write(tx: Tx) -> None:
        for row in rows:
            tx.operations.add(row)

    await store.write(write)


def ended(name: str) -> Operation:
    return replace(RERUN, id=name, status=OperationStatus.COMPLETED)


async def test_an_operation_comes_back_as_it_was(store: Store) -> None:
    whole = replace(
        RERUN,
        total_users=9,
        processed_users=2,
        failed_users=1,
        current_user_id="bob",
        stats={"found": 3},
        error="no",
        completed_at=8,
        cancel_requested=True,
    )
    await add(store, RERUN)
    assert await store.read(lambda tx: tx.operations.get("a")) == RERUN
    await store.write(lambda tx: tx.operations.put(whole))
    assert await store.read(lambda tx: tx.operations.get("a")) == whole
    assert await store.write(lambda tx: tx.operations.hold("a")) == whole
    assert await store.read(lambda tx: tx.operations.get("b")) is None


async def test_one_operation_of_a_service_is_in_progress(store: Store) -> None:
    await add(store, ended("before"), RERUN, replace(RERUN, id="other", service_name="manual"))
    with pytest.raises(Conflict, match="'rerun' is already in progress"):
        await add(store, replace(RERUN, id="b"))
    running = await store.write(lambda tx: (tx.operations.running("rerun"), tx.operations.running()))
    assert [[each.id for each in some] for some in running] == [["a"], ["a", "other"]]


async def test_the_latest_operation_is_the_one_begun_last_even_in_the_same_second(store: Store) -> None:
    await add(store, ended("z"), ended("a"), replace(ended("other"), service_name="manual"))
    latest = await store.read(lambda tx: tx.operations.latest("rerun"))
    assert latest is not None
    assert latest.id == "a"
    assert await store.read(lambda tx: tx.operations.latest("none")) is None


async def test_trimming_keeps_the_newest_of_the_service(store: Store) -> None:
    await add(store, *(ended(name) for name in "abc"), replace(ended("other"), service_name="manual"))
    await store.write(lambda tx: [tx.operations.note(each, UserProgress("ann")) for each in "abc"])
    assert await store.write(lambda tx: tx.operations.trim("rerun", 2)) == 1
    left = await store.read(lambda tx: [each for each in ("a", "b", "c", "other") if tx.operations.get(each)])
    assert left == ["b", "c", "other"]
    assert await store.read(lambda tx: tx.operations.outcomes("a", 9)) == []
    assert await store.read(lambda tx: tx.operations.outcomes("b", 9)) == [UserProgress("ann")]


async def test_an_outcome_tells_what_was_noted_before_and_keeps_its_place(store: Store) -> None:
    def note(tx: Tx) -> list[UserProgress | None]:
        first, second, third = UserProgress("ann", "no"), UserProgress("bob"), UserProgress("ann")
        return [tx.operations.note("a", each) for each in (first, second, third)]

    assert await store.write(note) == [None, None, UserProgress("ann", "no")]
    assert await store.read(lambda tx: tx.operations.outcomes("a", 9)) == [UserProgress("ann"), UserProgress("bob")]
    assert await store.read(lambda tx: tx.operations.outcomes("a", 1)) == [UserProgress("bob")]


async def test_a_forgotten_user_is_named_by_no_operation(store: Store) -> None:
    await add(store, replace(RERUN, current_user_id="ann", processed_users=1))
    await store.write(lambda tx: tx.operations.note("a", UserProgress("ann")))
    await store.write(lambda tx: tx.operations.note("a", UserProgress("bob")))
    await store.write(lambda tx: tx.erasures.remove_some("ann"))
    operation = await store.read(lambda tx: tx.operations.get("a"))
    assert operation is not None
    assert (operation.current_user_id, operation.processed_users) == ("", 1)
    assert await store.read(lambda tx: tx.operations.outcomes("a", 9)) == [UserProgress("bob")]


async def test_the_last_stall_counts_until_it_is_removed(store: Store) -> None:
    last = Stall("billing_error", "pay", since=9, notified=True)
    assert not await store.write(lambda tx: tx.stalls.remove())
    for stall in (Stall("auth_error", "key", since=7), last):
        await store.write(lambda tx, stall=stall: tx.stalls.put(stall))  # type: ignore[misc]
    assert await store.read(lambda tx: tx.stalls.get()) == last
    assert await store.write(lambda tx: tx.stalls.remove())
    assert await store.read(lambda tx: tx.stalls.get()) is None


async def test_spend_adds_up_by_day_operation_and_model(store: Store) -> None:
    big = Spend("large", 1, 2**40, 5)

    def write(tx: Tx) -> None:
        for _ in range(2):
            tx.spending.add("2026-01-02", "extract", big)
        tx.spending.add("2026-01-02", "extract", Spend("small", 1, 1, 1))
        tx.spending.add("2026-01-02", "consolidate", Spend("large", 1, 2, 3))
        tx.spending.add("2026-01-01", "extract", Spend("large", 1, 7, 7))

    await store.write(write)
    assert await store.read(lambda tx: tx.spending.total("2026-01-02")) == Spend("", 4, 2**41 + 3, 14)
    assert await store.read(lambda tx: tx.spending.total("2025-01-01")) == Spend()
    assert await store.read(lambda tx: tx.spending.since("2026-01-01")) == [
        Spent("2026-01-02", "consolidate", Spend("large", 1, 2, 3)),
        Spent("2026-01-02", "extract", big + big),
        Spent("2026-01-02", "extract", Spend("small", 1, 1, 1)),
        Spent("2026-01-01", "extract", Spend("large", 1, 7, 7)),
    ]
    assert len(await store.read(lambda tx: tx.spending.since("2026-01-02"))) == 3


def profile(user_id: str, status: Status) -> Learning:
    return Learning(Kind.PROFILE, "likes tea", key=f"{user_id} {status}", user_id=user_id, status=status, modified_at=3)


async def test_statuses_change_places_in_one_move(store: Store) -> None:
    rows = [profile("ann", status) for status in Status]
    ids = await store.write(lambda tx: tx.learnings.add(rows))
    swap = {Status.CURRENT: Status.ARCHIVED, Status.ARCHIVED: Status.CURRENT}
    moved = await store.write(lambda tx: tx.learnings.move(LearningFilter(Kind.PROFILE), swap))
    by_id = dict(zip(ids, rows, strict=True))
    assert moved == {number: row.status for number, row in by_id.items() if row.status in swap}
    found = await store.read(lambda tx: tx.learnings.many(ids))
    assert found == {
        number: replace(row, id=number, status=swap.get(row.status, row.status)) for number, row in by_id.items()
    }


async def test_rows_of_users_who_have_others(store: Store) -> None:
    rows = [profile("ann", Status.CURRENT), profile("ann", Status.PENDING), profile("bob", Status.CURRENT)]
    ids = await store.write(lambda tx: tx.learnings.add(rows))
    where = LearningFilter(Kind.PROFILE, of_users_with=LearningFilter(Kind.PROFILE, statuses=(Status.PENDING,)))
    assert await store.read(lambda tx: tx.learnings.count(where)) == 1
    assert list(await store.write(lambda tx: tx.learnings.move(where, {Status.CURRENT: Status.ARCHIVED}))) == ids[:1]
    assert await store.write(lambda tx: tx.learnings.remove(replace(where, statuses=(Status.ARCHIVED,)))) == 1
    assert list(await store.read(lambda tx: tx.learnings.many(ids))) == ids[1:]


async def test_several_events_are_noted_at_once_and_none_is_nothing(store: Store) -> None:
    events = [LineageEvent(1, Kind.PROFILE, op, at) for at, op in enumerate(("promoted", "archived"))]
    await store.write(lambda tx: tx.learnings.note())
    await store.write(lambda tx: tx.learnings.note(*events))
    assert await store.read(lambda tx: tx.learnings.lineage(1)) == events


async def test_no_statement_about_work_reaches_another_organisation(database: Database) -> None:
    ours, theirs = database.of("ours"), database.of("theirs")
    stall = Stall("auth_error", "key", since=1)
    await add(theirs, replace(RERUN, current_user_id="ann"))
    await theirs.write(lambda tx: tx.operations.note("a", UserProgress("ann")))
    await theirs.write(lambda tx: tx.stalls.put(stall))
    await theirs.write(lambda tx: tx.spending.add("2026-01-01", "extract", Spend("m", 1, 1, 1)))
    (row,) = await theirs.write(lambda tx: tx.learnings.add([profile("ann", Status.CURRENT)]))

    def touch(tx: Tx) -> list[object]:
        tx.operations.put(ended("a"))
        tx.erasures.remove_some("ann")
        return [
            tx.operations.get("a"),
            tx.operations.hold("a"),
            tx.operations.latest("rerun"),
            tx.operations.running(),
            tx.operations.trim("rerun", 0),
            tx.operations.outcomes("a", 9),
            tx.stalls.get(),
            tx.stalls.remove(),
            tx.spending.since("2000-01-01"),
            tx.spending.total("2026-01-01").calls,
            tx.learnings.move(LearningFilter(Kind.PROFILE), {Status.CURRENT: Status.ARCHIVED}),
        ]

    assert not any(await ours.write(touch))
    assert await theirs.read(lambda tx: tx.operations.get("a")) == replace(RERUN, current_user_id="ann")
    assert await theirs.read(lambda tx: tx.operations.outcomes("a", 9)) == [UserProgress("ann")]
    assert await theirs.read(lambda tx: tx.stalls.get()) == stall
    assert await theirs.read(lambda tx: tx.learnings.many([row])[row].status) is Status.CURRENT
    await add(ours, RERUN)


async def test_the_newest_operations_of_all_services_come_first(store: Store) -> None:
    await add(store, ended("first"), replace(RERUN, id="other", service_name="manual"), ended("last"))
    newest = await store.read(lambda tx: tx.operations.newest(2))
    assert [operation.id for operation in newest] == ["last", "other"]
