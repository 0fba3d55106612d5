"""One thread writes for all callers, and a write that fails undoes nothing of the others."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, insert, text

from reflexio.errors import StorageFull, StorageUnavailable
from reflexio.models.paging import Page
from reflexio.ports.storage import TimeRange
from reflexio.storage.schema import keys
from reflexio.storage.sqlite import SqliteDatabase, open_sqlite
from tests.builders import request, said


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[SqliteDatabase]:
    database = open_sqlite(tmp_path / "reflexio.db")
    yield database
    await database.close()


class Held:
    """Holds the writer, so that what is submitted meanwhile becomes one group."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._go = threading.Event()
        self._began = threading.Event()
        self._held = database._writer.write(self._wait)
        assert self._began.wait(10)

    def _wait(self, _: Connection) -> None:
        self._began.set()
        assert self._go.wait(10)

    async def release(self) -> None:
        self._go.set()
        await self._held


def add(number: int) -> Any:
    def write(connection: Connection) -> int:
        connection.execute(insert(keys), {"org_id": "acme", "digest": f"d{number}"})
        return number

    return write


async def digests(database: SqliteDatabase) -> set[str]:
    rows = await database.read(lambda connection: connection.execute(text("SELECT digest FROM keys")).all())
    return {row[0] for row in rows}


async def test_waiting_writes_share_one_commit(database: SqliteDatabase) -> None:
    commits: list[str] = []
    held = Held(database)
    writes = [database._writer.write(add(number)) for number in range(20)]
    watched = database._writer.write(
        lambda connection: connection.connection.driver_connection.set_trace_callback(commits.append)  # type: ignore[union-attr]
    )
    await held.release()
    assert await asyncio.gather(*writes) == list(range(20))
    await watched
    assert commits.count("COMMIT") == 1


@pytest.mark.parametrize(
    "failing",
    [
        lambda connection: 1 / 0,
        lambda connection: connection.execute(insert(keys), {"org_id": "acme", "digest": "d1"}),
        lambda connection: connection.execute(text("INSERT INTO nowhere VALUES (1)")),
        lambda connection: connection.execute(text("INSERT INTO keys (org_id, digest) VALUES (NULL, 'n')")),
        lambda connection: connection.execute(insert(keys), {"org_id": "acme", "digest": "\ud800"}),
        lambda connection: connection.execute(insert(keys), {"org_id": "a", "digest": "b", "created_at": 2**70}),
        lambda connection: connection.execute(insert(keys), {"org_id": object(), "digest": "b"}),
    ],
    ids=["python", "twice", "no table", "null", "surrogate", "large", "not a value"],
)
async def test_a_write_that_fails_fails_alone(database: SqliteDatabase, failing: Any) -> None:
    held = Held(database)
    before = database._writer.write(add(1))
    partly = database._writer.write(lambda connection: (add(99)(connection), failing(connection)))
    after = database._writer.write(add(2))
    await held.release()
    results = await asyncio.gather(before, partly, after, return_exceptions=True)
    assert (results[0], results[2]) == (1, 2)
    assert isinstance(results[1], Exception)
    assert await digests(database) == {"d1", "d2"}


async def test_when_the_whole_transaction_is_lost_every_caller_gets_an_error(database: SqliteDatabase) -> None:
    again = text("INSERT OR ROLLBACK INTO keys (org_id, digest) VALUES ('acme', 'd1')")
    held = Held(database)
    before = database._writer.write(add(1))
    undoing = database._writer.write(lambda connection: connection.execute(again))
    after = database._writer.write(add(2))
    await held.release()
    results = await asyncio.gather(before, undoing, after, return_exceptions=True)
    assert all(isinstance(result, StorageUnavailable) for result in results)
    assert await digests(database) == set()
    assert await database.write(add(3)) == 3


async def test_a_full_disk_loses_nothing_and_writing_goes_on_when_there_is_space(database: SqliteDatabase) -> None:
    store = database.of("acme")

    async def publish(name: str) -> None:
        def write(tx: Any) -> None:
            made = request(name)
            tx.requests.add(made)
            tx.interactions.add(made, said(*["x" * 10_000] * 50))

        await store.write(write)

    async def most_pages(count: int) -> None:
        await database.write(lambda connection: connection.exec_driver_sql(f"PRAGMA max_page_count={count}").scalar())

    await publish("before")
    pages = await database.read(lambda connection: connection.exec_driver_sql("PRAGMA page_count").scalar())
    await most_pages(int(pages or 0) + 5)
    results = await asyncio.gather(*[publish(f"full{n}") for n in range(4)], return_exceptions=True)
    assert all(isinstance(result, StorageFull) for result in results)
    assert "free some space" in str(results[0])
    assert await store.read(lambda tx: tx.requests.count()) == 1

    await most_pages(1_000_000)
    await publish("after")
    found = await store.read(lambda tx: tx.interactions.page(None, TimeRange(), Page(1000)))
    assert {turn.request_id for turn in found.rows} == {"before", "after"}
    assert len(found.rows) == 100


async def test_a_cancelled_write_that_has_not_begun_is_not_made(database: SqliteDatabase) -> None:
    held = Held(database)
    kept, cancelled = database._writer.write(add(1)), database._writer.write(add(2))
    assert cancelled.cancel()
    await held.release()
    assert await kept == 1
    assert await digests(database) == {"d1"}


async def test_a_caller_cancelled_while_its_write_is_made_disturbs_nobody(database: SqliteDatabase) -> None:
    began, go = threading.Event(), threading.Event()

    def slow(connection: Connection) -> None:
        began.set()
        assert go.wait(10)
        add(1)(connection)

    task = asyncio.create_task(database.write(slow))
    await asyncio.to_thread(began.wait, 10)
    task.cancel()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await database.write(add(2)) == 2
    assert await digests(database) == {"d1", "d2"}


async def test_after_closing_nothing_is_taken(database: SqliteDatabase) -> None:
    held = Held(database)
    writes = [database._writer.write(add(number)) for number in range(300)]
    closing = asyncio.create_task(database.close())
    await held.release()
    await closing
    assert [write.result() for write in writes] == list(range(300))
    with pytest.raises(StorageUnavailable, match="closed"):
        await database.write(add(301))
