"""A library that blocks, among work that does not: it runs in a thread, and what it asks for is done here.

The thread asks for one thing at a time and waits. So everything happens in the workflow's own task, in order, and a
workflow that is stopped takes its thread along.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")

Wanted = tuple[Callable[[], Awaitable[Any]], "Future[Any]"]


class Halt(BaseException):
    """The work in the thread ends here. Not an Exception: the library catches those and goes on."""


class Ask(Protocol):
    def __call__(self, make: Callable[[], Awaitable[R]]) -> R:
        """Has it done, and waits for it. Raises Halt when that fails or nobody serves any more."""
        ...


async def conduct(work: Callable[[Ask], T]) -> T:
    """Runs `work` in a thread of its own and does what it asks for. What fails here ends the work and is raised."""
    loop = asyncio.get_running_loop()
    wanted: asyncio.Queue[Wanted | None] = asyncio.Queue()
    ended: Future[T] = Future()
    gone = threading.Event()

    def tell(what: Wanted | None) -> None:
        try:
            loop.call_soon_threadsafe(wanted.put_nowait, what)
        except RuntimeError:  # The loop is closed: the process ends.
            raise Halt from None

    def ask(make: Callable[[], Awaitable[R]]) -> R:
        answer: Future[R] = Future()
        if gone.is_set():
            raise Halt
        tell((make, answer))
        return answer.result()

    def run() -> None:
        try:
            ended.set_result(work(ask))
        except BaseException as error:  # noqa: BLE001  handed to whoever waits
            ended.set_exception(error)
        try:
            tell(None)
        except Halt:
            return

    # A thread of its own: the shared ones are few, and this one may be busy for hours.
    threading.Thread(target=run, name="reflexio-optimise", daemon=True).start()
    try:
        while (next_one := await wanted.get()) is not None:
            await _serve(*next_one)
    finally:
        gone.set()
        while not wanted.empty():
            if left := wanted.get_nowait():
                left[1].set_exception(Halt())
    return ended.result()


async def _serve(make: Callable[[], Awaitable[Any]], answer: "Future[Any]") -> None:
    try:
        answer.set_result(await make())
    except BaseException:
        answer.set_exception(Halt())
        raise
