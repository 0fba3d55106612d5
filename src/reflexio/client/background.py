"""Calls that the caller does not wait for. They finish before the program ends, and failures are reported."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait

log = logging.getLogger("reflexio.client")

OnError = Callable[[Exception], None]


def _report(error: Exception, on_error: OnError | None) -> None:
    if on_error is None:
        log.error("a background call failed: %s", error)
        return
    try:
        on_error(error)
    except Exception:
        log.exception("the error callback failed on: %s", error)


class Background:
    """Runs calls one after the other on a thread of its own. The interpreter waits for them when it exits."""

    def __init__(self, on_error: OnError | None) -> None:
        self._on_error = on_error
        self._threads: ThreadPoolExecutor | None = None
        self._running: set[Future[None]] = set()
        self._starting = threading.Lock()

    def start(self, call: Callable[[], object]) -> None:
        # One thread keeps the order of the calls. Under a lock, or two first callers would each make a thread.
        with self._starting:
            self._threads = self._threads or ThreadPoolExecutor(1, thread_name_prefix="reflexio-background")
            future = self._threads.submit(self._run, call)
        self._running.add(future)
        future.add_done_callback(self._running.discard)

    def _run(self, call: Callable[[], object]) -> None:
        try:
            call()
        except Exception as error:  # noqa: BLE001  nobody waits for it, so it is reported
            _report(error, self._on_error)

    def flush(self) -> None:
        wait(list(self._running))


class AsyncBackground:
    """Runs calls one after the other as tasks of the caller's loop."""

    def __init__(self, on_error: OnError | None) -> None:
        self._on_error = on_error
        self._last: asyncio.Task[None] | None = None

    def start(self, call: Callable[[], Awaitable[object]]) -> None:
        self._last = asyncio.get_running_loop().create_task(self._run_after(self._last, call))

    async def _run_after(self, before: "asyncio.Task[None] | None", call: Callable[[], Awaitable[object]]) -> None:
        try:
            if before is not None:
                await asyncio.wait([before])
            await self._run(call)
        except asyncio.CancelledError:
            # The program ends: asyncio cancels its tasks, and then waits for what they still do.
            await self._run(call)
            raise

    async def _run(self, call: Callable[[], Awaitable[object]]) -> None:
        try:
            await call()
        except Exception as error:  # noqa: BLE001  nobody waits for it, so it is reported
            _report(error, self._on_error)

    async def flush(self) -> None:
        while self._last is not None and not self._last.done():
            await asyncio.wait([self._last])
