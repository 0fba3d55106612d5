"""Slots go to lanes first come, first served."""

import asyncio

from reflexio.engine.job_runner import LaneLimiter


async def test_a_long_lane_does_not_delay_the_others() -> None:
    limiter, order = LaneLimiter(1), list[str]()

    async def take(lane: str, number: int) -> None:
        async with limiter.slot(lane):
            order.append(f"{lane}{number}")
            await asyncio.sleep(0)

    await asyncio.gather(*(take("a", number) for number in range(5)), take("b", 0), take("c", 0))
    assert order == ["a0", "b0", "c0", "a1", "a2", "a3", "a4"]


async def test_a_cancelled_waiter_leaves_its_lane() -> None:
    limiter = LaneLimiter(1)
    held, release = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        async with limiter.slot("a"):
            held.set()
            await release.wait()

    async def take(lane: str) -> str:
        async with limiter.slot(lane):
            return lane

    holding = asyncio.create_task(hold())
    await held.wait()
    waiting = {lane: asyncio.create_task(take(lane)) for lane in "abc"}
    await asyncio.sleep(0)
    waiting["b"].cancel()
    release.set()
    await holding
    assert [await waiting["a"], await waiting["c"]] == ["a", "c"]
    assert limiter._lanes == {}
