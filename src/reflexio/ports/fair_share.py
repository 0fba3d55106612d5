"""How organisations share a number of places, so that none can take those of the others."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


def may_take_place(*, places: int, taken: int, own: int, organisations: int) -> bool:
    """Whether an organisation with `own` of the `taken` places may take another one.

    `organisations` counts those that hold a place or wait for one. Each has a right to an equal share, and to one place
    at least, even while all places are taken: calls that never return hold a place for minutes. What some leave free
    may be taken by any other.

    >>> may_take_place(places=8, taken=8, own=0, organisations=2)
    True
    >>> may_take_place(places=8, taken=8, own=4, organisations=2)
    False
    """
    return taken < places or own < max(1, places // max(1, organisations))


class FairSlots:
    """So many slots, shared by organisations. A free one goes to the organisation that holds the fewest.

    Within an organisation, who came first goes first. With `most`, no organisation holds more than so many, and there
    is never one slot more than `count`: for work that is sure to end, on means that are limited.
    """

    def __init__(self, count: int, most: int | None = None) -> None:
        self._count = count
        self._most = most
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
        own, taken = self._held[organisation], self._held.total()
        if self._most is not None:
            return taken < self._count and own < self._most
        organisations = len(self._held.keys() | self._waiting.keys())
        return may_take_place(places=self._count, taken=taken, own=own, organisations=organisations)
