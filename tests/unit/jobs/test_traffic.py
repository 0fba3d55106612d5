"""Who calls goes first: the background asks whether somebody does."""

import asyncio

from reflexio.jobs.background import Traffic


class Hand:
    """A clock that is moved by hand, and by those who sleep."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


def called(traffic: Traffic, clock: Hand, times: int, *, every: float) -> None:
    for _ in range(times):
        traffic.record_call()
        clock.at += every


def test_it_is_quiet_until_somebody_calls_and_soon_afterwards() -> None:
    clock = Hand()
    traffic = Traffic(clock)
    seen = [traffic.is_quiet]
    traffic.record_call()
    seen.append(traffic.is_quiet)
    clock.at += Traffic.QUIET
    assert [*seen, traffic.is_quiet] == [True, False, True]


def test_a_few_calls_a_second_are_no_crowd_however_long_they_last() -> None:
    clock = Hand()
    traffic = Traffic(clock)
    called(traffic, clock, 1000, every=1 / 20)
    assert not traffic.is_busy


def test_many_calls_a_second_are_a_crowd_and_a_crowd_disperses() -> None:
    clock = Hand()
    traffic = Traffic(clock)
    called(traffic, clock, 200, every=1 / 200)
    then = traffic.is_busy
    clock.at += 1
    assert (then, traffic.is_busy) == (True, False)


async def test_a_lull_is_waited_for_and_not_for_ever() -> None:
    traffic = Traffic()
    assert await traffic.wait_for_quiet()

    async def call_on() -> None:
        while True:
            traffic.record_call()
            await asyncio.sleep(0.01)

    calls = asyncio.create_task(call_on())
    await asyncio.sleep(0)
    assert not await traffic.wait_for_quiet()
    calls.cancel()
