"""Which process works on a folder."""

import asyncio
from pathlib import Path

import pytest

from reflexio.engine.leadership import FileLeadership, LeaseLeadership
from reflexio.engine.memory import MemoryJournal
from reflexio.engine.process_lock import ProcessLock
from reflexio.errors import StorageReadOnly


async def test_a_second_process_waits_and_takes_over(tmp_path: Path) -> None:
    first, second = FileLeadership(tmp_path / "lock"), FileLeadership(tmp_path / "lock")
    assert not await first.is_taken()
    await first.acquire()
    assert await second.is_taken()
    waiting = asyncio.create_task(second.acquire())
    await first.release()
    await asyncio.wait_for(waiting, 10)
    assert await first.is_taken()
    await second.release()
    assert not await first.is_taken()


async def test_a_folder_that_cannot_be_written_raises_storage_read_only(tmp_path: Path) -> None:
    with pytest.raises(StorageReadOnly), ProcessLock(tmp_path / "none" / "lock"):
        pass


async def test_a_lease_is_held_until_another_process_has_it() -> None:
    lease = MemoryJournal()
    first, second = LeaseLeadership(lease, "first"), LeaseLeadership(lease, "second")
    await first.acquire()
    losing = asyncio.create_task(first.lost())
    await asyncio.sleep(0)
    assert not losing.done()
    losing.cancel()
    await first.release()
    await second.acquire()
    await asyncio.wait_for(first.lost(), 10)
