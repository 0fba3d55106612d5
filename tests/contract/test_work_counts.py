"""What metrics count: work of all organisations, on every backend."""

import asyncio

from reflexio.models.extraction import Spend
from reflexio.models.usage import Stall
from reflexio.ports.storage import Database, LearnedWindow, Store, Tx, WorkCounts
from reflexio.ports.work import EnqueuedJob, Job
from tests.contract.conftest import OpenDatabase


def window(key: str, state: str) -> LearnedWindow:
    return LearnedWindow(key, "ann", state, (1,), {}, created_at=5)


async def test_work_of_all_organisations_is_counted_together(database: Database, store: Store) -> None:
    assert await database.work_counts() == WorkCounts()

    def learn(tx: Tx) -> None:
        for state in ("learned", "failed", "set_aside"):
            tx.windows.add(window(state, state))
        tx.spending.add("2026-01-02", "learn", Spend("small", 2, 2**41, 7))
        tx.stalls.put(Stall("auth_error", "no key", since=5))

    await store.write(learn)
    await database.of("globex").write(lambda tx: tx.windows.add(window("learned", "learned")))
    for number in (1, 2):
        await database.journal.add(
            EnqueuedJob(Job(f"job-{number}", "learn", "queued", None, ""), "ann", "{}"), 40 + number
        )
    expected = WorkCounts(2, 0, 41, 1, 2, 1, 1, 2, 2**41, 7)
    assert await database.work_counts() == expected


async def test_what_a_failed_write_counted_is_not_counted(database: Database, store: Store) -> None:
    def fail(tx: Tx) -> None:
        tx.windows.add(window("one", "learned"))
        raise LookupError

    assert await asyncio.gather(store.write(fail), return_exceptions=True)
    assert (await database.work_counts()).windows_learned == 0


async def test_writers_that_count_at_the_same_time_all_succeed(open_again: OpenDatabase) -> None:
    databases = [open_again()]
    if databases[0].type == "postgresql":
        databases.append(open_again())

    async def learn(database: Database, number: int) -> None:
        await database.of(f"org-{number}").write(lambda tx: tx.windows.add(window("one", "learned")))

    await asyncio.gather(*(learn(databases[number % len(databases)], number) for number in range(64)))
    assert (await databases[0].work_counts()).windows_learned == 64
    for database in databases:
        await database.close()
