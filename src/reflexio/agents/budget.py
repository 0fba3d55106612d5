"""What model calls cost, what a run may cost, and the meter that compares the two."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Usage:
    """What model calls cost."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "Usage") -> "Usage":
        tokens = self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens
        return Usage(self.calls + other.calls, *tokens, self.cost_usd + other.cost_usd)

    def __sub__(self, other: "Usage") -> "Usage":
        tokens = self.input_tokens - other.input_tokens, self.output_tokens - other.output_tokens
        return Usage(self.calls - other.calls, *tokens, self.cost_usd - other.cost_usd)


NO_USAGE = Usage()


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that a run may cost; None is no limit.

    Limits are checked before each call, so the last call may exceed them. `seconds` is also enforced during a call:
    work that is still running when they are over is abandoned.
    """

    usd: float | None = None
    tokens: int | None = None
    seconds: float | None = None
    calls: int | None = None

    def __post_init__(self) -> None:
        for name in ("usd", "tokens", "seconds", "calls"):
            limit = getattr(self, name)
            if limit is not None and not limit >= 0:
                raise ValueError(f"Budget({name}={limit!r}): a limit is 0 or more, or None for no limit.")


UNLIMITED = Budget()


class OutOfBudget(Exception):
    """A limit of the budget was reached during the work of an agent."""


class OutOfTime(OutOfBudget):
    """The seconds of the budget ran out during a call."""


class Meter:
    """Adds up what is spent. One meter serves one run; its seconds start when the meter is created."""

    __slots__ = ("_clock", "_started", "budget", "usage")

    def __init__(self, budget: Budget = UNLIMITED, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.budget = UNLIMITED if budget == UNLIMITED else budget
        self.usage: Usage = NO_USAGE
        self._clock = clock
        self._started = clock()

    def spend(self, usage: Usage) -> None:
        self.usage = self.usage + usage

    def reached_limit(self) -> str:
        """The name of a limit that is reached; empty as long as the next call is allowed."""
        if self.budget is UNLIMITED:
            return ""
        if self.is_out_of_time():
            return "seconds"
        for name, used in (("calls", self.usage.calls), ("tokens", self.usage.tokens), ("usd", self.usage.cost_usd)):
            limit = getattr(self.budget, name)
            if limit is not None and used >= limit:
                return name
        return ""

    def is_out_of_time(self) -> bool:
        return self.budget.seconds is not None and self._seconds_left() == 0

    def _seconds_left(self) -> float | None:
        if self.budget.seconds is None:
            return None
        return max(0.0, self._started + self.budget.seconds - self._clock())

    def within_time(self, work: Awaitable[T]) -> Awaitable[T]:
        """The same work, abandoned with `OutOfTime` when the seconds are over."""
        return work if self.budget.seconds is None else self._limited(work)

    async def _limited(self, work: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(self._seconds_left()) as limit:
                return await work
        except TimeoutError:
            if limit.expired():
                raise OutOfTime from None
            raise

    def remaining(self) -> Budget:
        """What may still be spent."""
        if self.budget is UNLIMITED:
            return UNLIMITED
        budget, usage = self.budget, self.usage
        return Budget(
            usd=None if budget.usd is None else max(0.0, budget.usd - usage.cost_usd),
            tokens=None if budget.tokens is None else max(0, budget.tokens - usage.tokens),
            seconds=self._seconds_left(),
            calls=None if budget.calls is None else max(0, budget.calls - usage.calls),
        )


def price(model: str, input_tokens: int, output_tokens: int) -> float:
    """The price in US dollars, from the price list that comes with pydantic-ai; 0 for a model that is not listed.

    `model` is like "openai:gpt-5-mini", or ":gpt-5-mini" when the provider is unknown.
    """
    from genai_prices import Usage as TokenCounts
    from genai_prices import calc_price

    provider, _, name = model.partition(":")
    counts = TokenCounts(input_tokens=input_tokens, output_tokens=output_tokens)
    try:
        return float(calc_price(counts, name, provider_id=provider or None).total_price)
    except LookupError:
        return 0.0
