"""Which job runs next: one of a lane at a time, and a fair share of the slots for each organisation."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from reflexio.ports.fair_share import FairSlots


@dataclass
class _Lane:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class LaneLimiter:
    """One job of a lane at a time, lanes side by side in fair slots.

    Only one job of a lane waits for a free slot, so a long lane does not delay the others.
    """

    def __init__(self, concurrency: int) -> None:
        self._slots = FairSlots(concurrency)
        self._lanes: dict[str, _Lane] = {}

    @asynccontextmanager
    async def slot(self, name: str, organisation: str = "") -> AsyncIterator[None]:
        lane = self._lanes.setdefault(name, _Lane())
        lane.users += 1
        try:
            async with lane.lock, self._slots.slot(organisation):
                yield
        finally:
            lane.users -= 1
            if not lane.users:
                del self._lanes[name]
