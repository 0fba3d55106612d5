"""Calls that the caller does not wait for. They finish before the program ends, and failures are reported.

Each is made by the process that started it: a fork inherits none, and makes its own.
"""

import asyncio
import atexit
import logging
import os
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

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


@dataclass
class _CallThread:
    """The thread of one process, and the calls that it has not finished. One thread keeps their order."""

    executor: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="reflexio-background")
    )
    running: set[Future[None]] = field(default_factory=set)


class Background:
    """Runs calls one after the other on a thread of its own. The interpreter waits for them when it exits."""

    def __init__(self, on_error: OnError | None) -> None:
        self._on_error = on_error
        # By process: a fork has a copy of the parent's executor, but not its thread.
        self._threads: dict[int, _CallThread] = {}

    def start(self, call: Callable[[], object]) -> None:
        thread = self._thread()
        future = thread.executor.submit(self._run, call)
        thread.running.add(future)
        future.add_done_callback(thread.running.discard)

    def _thread(self) -> _CallThread:
        # Without a lock, which a fork could inherit locked. An executor that loses this race has started no thread.
        process = os.getpid()
        return self._threads.get(process) or self._threads.setdefault(process, _CallThread())

    def _run(self, call: Callable[[], object]) -> None:
        try:
            call()
        except Exception as error:  # noqa: BLE001  nobody waits for it, so it is reported
            _report(error, self._on_error)

    def flush(self) -> None:
        if thread := self._threads.get(os.getpid()):
            wait(list(thread.running))


@dataclass(frozen=True, eq=False)
class _WaitingCall:
    call: Callable[[], Awaitable[object]]
    process: int = field(default_factory=os.getpid)
    done: Future[None] = field(default_factory=Future)


class AsyncBackground:
    """Runs calls one after the other as a task of the caller's loop.

    A loop that stops before they are made leaves them to the next loop that uses the client, or to the end of the
    program. A call that was cut off is made again.
    """

    def __init__(self, on_error: OnError | None) -> None:
        self._on_error = on_error
        self._lock = threading.Lock()
        self._waiting: deque[_WaitingCall] = deque()
        self._runner: asyncio.Task[None] | None = None

    def start(self, call: Callable[[], Awaitable[object]]) -> None:
        with self._lock:
            self._waiting.append(_WaitingCall(call))
            _UNFINISHED.add(self)
            self._resume()

    def _resume(self) -> None:
        """Takes over from a loop that has stopped."""
        runner = self._runner
        if runner is None or runner.done() or not runner.get_loop().is_running():
            if runner and not runner.get_loop().is_closed():
                runner.cancel()  # should its loop go on, it does not make the call as well
            self._runner = asyncio.get_running_loop().create_task(self.make_calls())

    def _next(self, finished: _WaitingCall | None = None) -> _WaitingCall | None:
        """The call to make now, or None when there is none, or when another loop has taken over."""
        with self._lock:
            if self._runner is not asyncio.current_task():
                return None
            if finished is not None:
                self._waiting.popleft()
                finished.done.set_result(None)
            while self._waiting and self._waiting[0].process != os.getpid():
                self._waiting.popleft()
            if self._waiting:
                return self._waiting[0]
            self._runner = None
            _UNFINISHED.discard(self)
            return None

    async def make_calls(self) -> None:
        """Makes all calls that wait."""
        was_cancelled = False
        waiting = self._next()
        while waiting:
            try:
                await self._run(waiting.call)
            except asyncio.CancelledError:
                if was_cancelled or self._runner is not asyncio.current_task():
                    raise
                # The loop ends: asyncio cancels its tasks, and then waits for what they still do.
                was_cancelled = True
                continue
            waiting = self._next(waiting)
        if was_cancelled:
            raise asyncio.CancelledError

    async def _run(self, call: Callable[[], Awaitable[object]]) -> None:
        try:
            await call()
        except Exception as error:  # noqa: BLE001  nobody waits for it, so it is reported
            _report(error, self._on_error)

    def finish(self) -> None:
        """Makes the calls that no loop has made, at the end of the program."""

        async def run() -> None:
            with self._lock:
                self._resume()
            await self.flush()

        if any(waiting.process == os.getpid() for waiting in self._waiting):
            asyncio.run(run())

    async def flush(self) -> None:
        with self._lock:
            unfinished = [waiting.done for waiting in self._waiting if waiting.process == os.getpid()]
            if unfinished:
                self._resume()
        if unfinished:
            await asyncio.wait([asyncio.wrap_future(done) for done in unfinished])


_UNFINISHED: set[AsyncBackground] = set()
"""Kept here, because the loop that kept their tasks may be gone."""


def _finish_all() -> None:
    for background in list(_UNFINISHED):
        background.finish()


# While threads can still be started, which looking up a host needs. Where that is impossible: at the very end.
getattr(threading, "_register_atexit", atexit.register)(_finish_all)
