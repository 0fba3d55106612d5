"""Tasks beside the callers: they are kept referenced, restarted after unexpected errors, and yield to traffic."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any

log = logging.getLogger("reflexio")

RESTART_SECONDS = 5.0


class BackgroundTasks:
    """Holds references to running tasks: the event loop alone would let them be garbage-collected."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def cancel_all(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def restart_on_error(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Runs `work` again after an error nobody expected, which is logged with its traceback."""
    while True:
        try:
            return await work()
        except Exception:
            log.exception("background work failed and begins again in %g s", RESTART_SECONDS)
            await asyncio.sleep(RESTART_SECONDS)


class Traffic:
    """How many callers there are right now, so that background work can yield to them."""

    QUIET, LONGEST_WAIT, LONGEST_BUSY_WAIT = 0.25, 0.25, 1.0
    CALLS_A_SECOND, BUSY_LEVEL = 25.0, 10.0
    """A leaky bucket that drains at that rate; traffic is busy while the bucket is half full."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._last_call = -self.QUIET
        self._level = 0.0

    def record_call(self) -> None:
        now = self._monotonic()
        self._level = min(2 * self.BUSY_LEVEL, self._level_at(now) + 1)
        self._last_call = now

    def _level_at(self, now: float) -> float:
        return max(0.0, self._level - (now - self._last_call) * self.CALLS_A_SECOND)

    @property
    def is_busy(self) -> bool:
        return self._level_at(self._monotonic()) > self.BUSY_LEVEL

    @property
    def is_quiet(self) -> bool:
        return self._monotonic() - self._last_call >= self.QUIET

    async def wait_for_quiet(self) -> bool:
        """Waits for a moment without calls, but not for long; True when it is quiet now."""
        deadline = self._monotonic() + (self.LONGEST_BUSY_WAIT if self.is_busy else self.LONGEST_WAIT)
        while not self.is_quiet and self._monotonic() < deadline:  # noqa: ASYNC110  calls only leave a time stamp
            await asyncio.sleep(self.QUIET / 2)
        return self.is_quiet
