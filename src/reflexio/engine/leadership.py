"""Which process runs the schedules: one at a time, however many workers there are."""

import asyncio
import logging
from contextlib import suppress
from pathlib import Path

from reflexio.engine.process_lock import ProcessLock
from reflexio.errors import StorageTaken, StorageUnavailable
from reflexio.ports.work import LeaderLease

log = logging.getLogger("reflexio")

FIRST_LOOK, LOOK_SECONDS = 0.1, 1.0
"""Seconds until it is tried again to lead: at first soon, as after a restart."""
RENEW_SECONDS = 1.0


class FileLeadership:
    """Of the processes on one folder. The lock is the operating system's, so a killed process gives it up."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock: ProcessLock | None = None

    async def acquire(self) -> None:
        pause = FIRST_LOOK
        while self._lock is None:
            lock = ProcessLock(self._path, timeout=0)
            try:
                await asyncio.to_thread(lock.__enter__)
            except StorageTaken:
                await asyncio.sleep(pause)
                pause = min(2 * pause, LOOK_SECONDS)
            else:
                self._lock = lock

    async def lost(self) -> None:
        await asyncio.get_running_loop().create_future()

    async def is_taken(self) -> bool:
        if self._lock:
            return True
        lock = ProcessLock(self._path, timeout=0)
        try:
            await asyncio.to_thread(lock.__enter__)
        except StorageTaken:
            return True
        lock.__exit__()
        return False

    async def release(self) -> None:
        if self._lock:
            self._lock.__exit__()
            self._lock = None


class LeaseLeadership:
    """Of the workers on one database. A worker that is silent for some seconds loses it to another one."""

    def __init__(self, lease: LeaderLease, holder: str) -> None:
        self._lease = lease
        self._holder = holder

    async def acquire(self) -> None:
        while not await self._try():  # noqa: ASYNC110  the database does not tell when a lease ends
            await asyncio.sleep(LOOK_SECONDS)

    async def lost(self) -> None:
        while await self._try():  # noqa: ASYNC110
            await asyncio.sleep(RENEW_SECONDS)
        log.warning("another worker runs the schedules now")

    async def is_taken(self) -> bool:
        return await self._lease.has_leader()

    async def release(self) -> None:
        with suppress(StorageUnavailable):
            await self._lease.resign(self._holder)

    async def _try(self) -> bool:
        try:
            return await self._lease.lead(self._holder)
        except StorageUnavailable as error:
            log.warning("the schedules wait: %s", error)
            return False
