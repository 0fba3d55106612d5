"""How often a caller may call. A bucket per caller and limit fills steadily and empties by one a call."""

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

from reflexio.errors import RateLimited
from reflexio.settings import RateLimit

MOST_BUCKETS = 100_000


def name(path: str) -> str:
    """What an operator calls the route of a path."""
    return path.rpartition("/")[2]


class Limiter:
    def __init__(self, limits: Sequence[RateLimit], *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._monotonic = monotonic
        self._buckets: OrderedDict[tuple[str, RateLimit], tuple[float, float]] = OrderedDict()

    def admit(self, caller: str, route: str) -> None:
        """Raises RateLimited, and then takes nothing, when a limit that covers `route` is used up."""
        now = self._monotonic()
        wanted = [(caller, limit) for limit in self._limits if limit.route in ("*", route)]
        levels = [(key, self._level(key, now)) for key in wanted]
        for (_, limit), level in levels:
            if level < 1:
                raise RateLimited(retry_after=round((1 - level) * limit.seconds / limit.count, 3))
        for key, level in levels:
            self._buckets[key] = (now, level - 1)
            self._buckets.move_to_end(key)
        while len(self._buckets) > MOST_BUCKETS:
            self._buckets.popitem(last=False)

    def _level(self, key: tuple[str, RateLimit], now: float) -> float:
        limit = key[1]
        seen, level = self._buckets.get(key, (now, float(limit.count)))
        return min(float(limit.count), level + (now - seen) * limit.count / limit.seconds)
