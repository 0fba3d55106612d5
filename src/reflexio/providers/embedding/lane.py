"""A few threads for work that fills the processor, and the order in which callers get them."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from queue import PriorityQueue
from typing import Any, TypeVar

T = TypeVar("T")


class Lane:
    """Runs pieces of work off the event loop; who asks for least goes first.

    `size` is what the caller still wants done, in any unit that all callers share. A piece overtakes those
    that came before it and want more, but none is overtaken by more than `size` others: a large import gives
    way to every question and still ends.
    """

    def __init__(self, name: str, *, threads: int) -> None:
        self._threads = ThreadPoolExecutor(max_workers=threads, thread_name_prefix=name)
        self._arrivals = count()
        self._waiting: PriorityQueue[tuple[int, int, Future[Any], Callable[[], Any]]] = PriorityQueue()

    async def run(self, work: Callable[[], T], *, size: int) -> T:
        arrival = next(self._arrivals)
        done: Future[T] = Future()
        self._waiting.put((arrival + size, arrival, done, work))
        self._threads.submit(self._serve_next)
        return await asyncio.wrap_future(done)

    def close(self) -> None:
        """Stop after the pieces at hand."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _serve_next(self) -> None:
        _, _, done, work = self._waiting.get()
        if not done.set_running_or_notify_cancel():
            return
        try:
            done.set_result(work())
        except BaseException as error:  # noqa: BLE001  # it belongs to whoever waits for this piece
            done.set_exception(error)
