"""Whose turn it is: one job of a lane at a time, lanes side by side up to a limit, first come first served."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass
class _Lane:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    wanted: int = 0


class Lanes:
    """A lane stands in line for room with one job only, so a long lane holds up no other."""

    def __init__(self, concurrency: int) -> None:
        self._room = asyncio.Semaphore(concurrency)
        self._lanes: dict[str, _Lane] = {}

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[None]:
        lane = self._lanes.setdefault(name, _Lane())
        lane.wanted += 1
        try:
            async with lane.lock, self._room:
                yield
        finally:
            lane.wanted -= 1
            if not lane.wanted:
                del self._lanes[name]
