import asyncio
from collections.abc import AsyncIterator
from threading import Event, current_thread, main_thread

import pytest

from reflexio.providers.embedding.local import PriorityThreadPool


@pytest.fixture
async def pool() -> AsyncIterator[PriorityThreadPool]:
    pool = PriorityThreadPool("test", threads=1)
    yield pool
    pool.close()


async def held(pool: PriorityThreadPool) -> tuple[Event, "asyncio.Task[None]"]:
    """Occupy the only thread until the event is set."""
    begun, release = Event(), Event()

    def wait() -> None:
        begun.set()
        release.wait(10)

    task = asyncio.create_task(pool.run(wait, size=1))
    await asyncio.to_thread(begun.wait, 10)
    return release, task


async def order_of(pool: PriorityThreadPool, sizes: list[int]) -> list[int]:
    """Which of the waiting pieces (by size) is served when."""
    served: list[int] = []
    release, holder = await held(pool)
    tasks = [asyncio.create_task(pool.run(lambda size=size: served.append(size), size=size)) for size in sizes]  # type: ignore[misc]
    await asyncio.sleep(0)
    release.set()
    await asyncio.gather(holder, *tasks)
    return served


async def test_work_runs_off_the_event_loop(pool: PriorityThreadPool) -> None:
    assert await pool.run(current_thread, size=1) is not main_thread()


async def test_the_smallest_request_goes_first(pool: PriorityThreadPool) -> None:
    assert await order_of(pool, [5000, 40, 1]) == [1, 40, 5000]


async def test_requests_of_one_size_run_in_the_order_of_arrival(pool: PriorityThreadPool) -> None:
    first, second = object(), object()
    served: list[object] = []
    release, holder = await held(pool)
    tasks = [asyncio.create_task(pool.run(lambda who=who: served.append(who), size=1)) for who in (first, second)]  # type: ignore[misc]
    await asyncio.sleep(0)
    release.set()
    await asyncio.gather(holder, *tasks)
    assert served == [first, second]


async def test_a_large_request_is_overtaken_a_limited_number_of_times(pool: PriorityThreadPool) -> None:
    served = await order_of(pool, [8, *[1] * 20])
    assert 0 < served.index(8) < 8


async def test_a_failure_goes_to_its_caller_and_the_pool_goes_on(pool: PriorityThreadPool) -> None:
    with pytest.raises(ZeroDivisionError):
        await pool.run(lambda: 1 // 0, size=1)
    assert await pool.run(lambda: "next", size=1) == "next"


async def test_work_of_a_cancelled_caller_is_not_run(pool: PriorityThreadPool) -> None:
    done: list[str] = []
    release, holder = await held(pool)
    task = asyncio.create_task(pool.run(lambda: done.append("wasted"), size=1))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    release.set()
    await holder
    await pool.run(lambda: done.append("wanted"), size=1)
    assert done == ["wanted"]
