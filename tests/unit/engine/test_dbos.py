"""What is special to DBOS: how it starts, how quiet it is, what it leaves to the process around it."""

import asyncio
import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from reflexio.engine import dbos as engine
from reflexio.engine.dbos import DbosWork
from reflexio.errors import StorageCorrupt, StorageReadOnly, StorageTaken
from reflexio.ports.work import Json, Steps


async def one_step(steps: Steps, data: Json) -> Json:
    async def act() -> Json:
        return {"n": data["n"]}

    return await steps("one", act)


@pytest.fixture
async def work(tmp_path: Path) -> AsyncIterator[DbosWork]:
    work = DbosWork(tmp_path / "work.db", grace=0.3)
    work.register("one", one_step)
    await work.start()
    yield work
    await work.close()


async def done(work: DbosWork, key: str) -> Json:
    await work.enqueue("one", key, {"n": 1}, lane="l")
    async with asyncio.timeout(30):
        job = await work.wait(key)
    assert job.state == "done"
    return job.result or {}


def test_dbos_is_imported_only_by_start() -> None:
    command = [sys.executable, "-c", "import sys, reflexio.engine.dbos; print('dbos' in sys.modules)"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "False\n"


async def test_a_second_one_in_the_process_is_turned_away(work: DbosWork, tmp_path: Path) -> None:
    second = DbosWork(tmp_path / "other" / "work.db")
    with pytest.raises(StorageTaken, match="This process"):
        await second.start()
    await second.close()
    assert await done(work, "k") == {"n": 1}


async def test_a_start_that_failed_can_be_repeated(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    path.write_bytes(b"this is no database" * 100)
    damaged = DbosWork(path)
    damaged.register("one", one_step)
    with pytest.raises(StorageCorrupt):
        await damaged.start()
    with pytest.raises(StorageCorrupt):
        await damaged.enqueue("one", "k", {}, lane="l")
    await damaged.close()
    assert path.read_bytes() == b"this is no database" * 100
    path.unlink()
    work = DbosWork(path)
    work.register("one", one_step)
    await work.start()
    assert await done(work, "k") == {"n": 1}
    await work.close()


async def test_a_folder_that_cannot_be_made_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageReadOnly):
        await DbosWork(tmp_path / "file" / "work.db").start()


async def test_nobody_else_reads_the_database(work: DbosWork, tmp_path: Path) -> None:
    await done(work, "k")
    assert {(tmp_path / name).stat().st_mode & 0o777 for name in ("work.db", "work.db-wal", "work.db-shm")} == {0o600}


async def test_it_says_nothing_and_opens_no_port(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Any] = []
    for verb in ("bind", "connect", "listen"):
        monkeypatch.setattr(socket.socket, verb, lambda *values: opened.append(values))
    caplog.set_level(logging.INFO)
    work = DbosWork(tmp_path / "work.db", grace=0.3)
    work.register("one", one_step)
    await work.start()
    await done(work, "k")
    held = asyncio.Event()

    async def hold(steps: Steps, data: Json) -> Json:
        held.set()
        return await steps("hold", asyncio.Event().wait)  # type: ignore[arg-type]

    work.register("hold", hold)
    await work.enqueue("hold", "held", {}, lane="l")
    await held.wait()
    await work.close()
    assert [(each.name, each.getMessage()) for each in caplog.records] == []
    assert capfd.readouterr() == ("", "")
    assert opened == []


async def test_it_leaves_the_loop_and_its_threads_as_they_were(tmp_path: Path) -> None:
    before = await asyncio.to_thread(threading.current_thread)
    threads = set(threading.enumerate())
    work = DbosWork(tmp_path / "work.db")
    work.register("one", one_step)
    await work.start()
    await done(work, "k")
    await work.close()
    assert (await asyncio.to_thread(threading.current_thread)).name.startswith(before.name.rstrip("0123456789"))
    left = {each.name for each in set(threading.enumerate()) - threads}
    assert {name for name in left if not name.startswith("asyncio_")} == set()


async def test_a_job_whose_end_could_not_be_written_goes_on_by_itself(
    work: DbosWork, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dbos._sys_db import SystemDatabase

    monkeypatch.setattr(engine, "RECHECK", 0.1)
    write, failures = SystemDatabase.update_workflow_outcome, list[str]()

    def fail_once(self: SystemDatabase, *values: Any, **named: Any) -> bool:
        if len(failures) < 2:
            failures.append("full")
            raise OperationalError("", {}, Exception("database or disk is full"))
        return write(self, *values, **named)

    monkeypatch.setattr(SystemDatabase, "update_workflow_outcome", fail_once)
    assert await done(work, "k") == {"n": 1}
    assert failures == ["full", "full"]


async def test_growth_is_bounded(work: DbosWork, tmp_path: Path) -> None:
    for number in range(3):
        await done(work, f"{number}")
    assert await work.forget(2**33) == 3
    left = await work._off_loop(_rows, work)
    assert {table: rows for table, rows in left.items() if rows and table.startswith(("workflow_", "operation_"))} == {}


def _rows(work: DbosWork) -> dict[str, int]:
    with work._engine.connect() as connection:
        tables = connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'table'").scalars().all()
        return {table: connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one() for table in tables}  # noqa: S608


def test_the_process_ends_although_nobody_closed(tmp_path: Path) -> None:
    code = """
import asyncio, sys
from pathlib import Path
from reflexio.engine.dbos import DbosWork
asyncio.run(DbosWork(Path(sys.argv[1])).start())
"""
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    command = [sys.executable, "-c", code, str(tmp_path / "work.db")]
    assert subprocess.run(command, env=environment, timeout=60, check=False).returncode == 0
