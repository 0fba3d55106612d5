"""When a failed attempt is repeated: the length of the pause, and steps that are retried on provider errors."""

import asyncio
from collections.abc import Awaitable, Callable

from reflexio.errors import ProviderError, ProviderRefused
from reflexio.jobs.token_budget import record_spend
from reflexio.models.extraction import Spend
from reflexio.ports.clock import Clock
from reflexio.ports.storage import Store
from reflexio.ports.work import Json, Steps

BACKOFF_SECONDS, LONGEST_BACKOFF = 2, 300
LONGEST_PROBE = 20
"""Seconds between two attempts at most while a provider refuses the key or the bill."""
STEP_ATTEMPTS = 3
Pause = Callable[[float], Awaitable[None]]


def backoff(attempts: int, longest: int = LONGEST_BACKOFF) -> int:
    """Seconds until the next attempt: doubled after each failure, up to `longest`."""
    return min(longest, BACKOFF_SECONDS << min(attempts, 10))


def is_pausing(retry_at: int, now: int) -> bool:
    """Whether it is too early to try again. A time far ahead was set by a clock that has been set back since."""
    return 0 < retry_at - now <= LONGEST_BACKOFF


def with_retries(
    steps: Steps, prefix: str, store: Store, clock: Clock, operation: str, pause: Pause = asyncio.sleep
) -> Steps:
    """Steps named behind `prefix` that are retried after provider errors. The spend of failed attempts is recorded."""

    async def step(name: str, act: Callable[[], Awaitable[Json]]) -> Json:
        attempt = 1
        while True:
            try:
                return await steps(f"{prefix}/{name}", act)
            except ProviderError as error:
                await record_spend(store, error.spend or Spend(), clock, operation)
                if attempt == STEP_ATTEMPTS or isinstance(error, ProviderRefused):
                    raise
            await pause(float(BACKOFF_SECONDS**attempt))
            attempt += 1

    return step
