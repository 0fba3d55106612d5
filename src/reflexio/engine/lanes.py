"""Which job runs next: one of a lane at a time, and a fair share of the slots for each organisation."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from reflexio.ports.fair_share import may_take_place


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


class FairSlots:
    """So many slots, shared by organisations. A free one goes to the organisation that holds the fewest.

    Within an organisation, who came first goes first.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._held: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def slot(self, organisation: str) -> AsyncIterator[None]:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(organisation, deque()).append(turn)
        self._give()
        try:
            await turn
            yield
        finally:
            self._leave(organisation, turn)

    def _leave(self, organisation: str, turn: "asyncio.Future[None]") -> None:
        queue = self._waiting.get(organisation, deque())
        if turn in queue:  # it gave up waiting
            queue.remove(turn)
            if not queue:
                del self._waiting[organisation]
        else:
            self._held[organisation] -= 1
            self._held += Counter()  # forgets organisations that hold none
        self._give()

    def _give(self) -> None:
        while waiting := [organisation for organisation in self._waiting if self._may_begin(organisation)]:
            organisation = min(waiting, key=self._held.__getitem__)
            queue = self._waiting[organisation]
            turn = queue.popleft()
            # Behind those who wait as well, should all hold as many.
            del self._waiting[organisation]
            if queue:
                self._waiting[organisation] = queue
            self._held[organisation] += 1
            if not turn.done():
                turn.set_result(None)

    def _may_begin(self, organisation: str) -> bool:
        organisations = len(self._held.keys() | self._waiting.keys())
        own, taken = self._held[organisation], self._held.total()
        return may_take_place(places=self._count, taken=taken, own=own, organisations=organisations)
