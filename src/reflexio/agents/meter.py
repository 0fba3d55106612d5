"""What a run has cost so far, held against what it may cost."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from reflexio.agents.values import NO_USAGE, Budget, Usage

T = TypeVar("T")

UNLIMITED = Budget()


class OutOfTime(Exception):
    """The seconds of the budget were over while something was under way."""


class Meter:
    """Counts what is spent. One meter serves one run; its seconds begin when it is made."""

    __slots__ = ("_began", "_clock", "budget", "usage")

    def __init__(self, budget: Budget = UNLIMITED, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.budget = UNLIMITED if budget == UNLIMITED else budget
        self.usage: Usage = NO_USAGE
        self._clock = clock
        self._began = clock()

    def spend(self, usage: Usage) -> None:
        self.usage = self.usage + usage

    def spent(self) -> str:
        """The name of a limit that is reached; empty while the next call may be made."""
        if self.budget is UNLIMITED:
            return ""
        if self.is_out_of_time():
            return "seconds"
        budget, usage = self.budget, self.usage
        if budget.calls is not None and usage.calls >= budget.calls:
            return "calls"
        if budget.tokens is not None and usage.tokens >= budget.tokens:
            return "tokens"
        if budget.usd is not None and usage.cost_usd >= budget.usd:
            return "usd"
        return ""

    def is_out_of_time(self) -> bool:
        left = self.seconds_left()
        return left is not None and left <= 0

    def seconds_left(self) -> float | None:
        if self.budget.seconds is None:
            return None
        return max(0.0, self._began + self.budget.seconds - self._clock())

    def in_time(self, work: Awaitable[T]) -> Awaitable[T]:
        """The same work, given up with `OutOfTime` when the seconds are over."""
        return work if self.budget.seconds is None else self._limited(work)

    async def _limited(self, work: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(self.seconds_left()) as limit:
                return await work
        except TimeoutError:
            if limit.expired():
                raise OutOfTime from None
            raise

    def left(self) -> Budget:
        """What may still be spent."""
        if self.budget is UNLIMITED:
            return UNLIMITED
        budget, usage = self.budget, self.usage
        return Budget(
            usd=None if budget.usd is None else max(0.0, budget.usd - usage.cost_usd),
            tokens=None if budget.tokens is None else max(0, budget.tokens - usage.tokens),
            seconds=self.seconds_left(),
            calls=None if budget.calls is None else max(0, budget.calls - usage.calls),
        )
