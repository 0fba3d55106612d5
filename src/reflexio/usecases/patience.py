"""Steps that get another chance: a provider that is away, or a model that talks nonsense, is asked again."""

import asyncio
from collections.abc import Awaitable, Callable

from reflexio.errors import ProviderError, ProviderRefused
from reflexio.learning.workflow import account
from reflexio.models.learned import Spend
from reflexio.ports.clock import Clock
from reflexio.ports.storage import Store
from reflexio.ports.work import Json, Steps

ATTEMPTS, BACKOFF = 3, 2.0
Pause = Callable[[float], Awaitable[None]]


def patient(
    steps: Steps, prefix: str, store: Store, clock: Clock, operation: str, pause: Pause = asyncio.sleep
) -> Steps:
    """The steps of one part of a workflow, named behind its prefix. What failed attempts cost is written down."""

    async def step(name: str, act: Callable[[], Awaitable[Json]]) -> Json:
        attempt = 1
        while True:
            try:
                return await steps(f"{prefix}/{name}", act)
            except ProviderError as error:
                await account(store, error.spend or Spend(), clock, operation)
                if attempt == ATTEMPTS or isinstance(error, ProviderRefused):
                    raise
            await pause(BACKOFF**attempt)
            attempt += 1

    return step
