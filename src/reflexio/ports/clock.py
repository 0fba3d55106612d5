"""The current time. Tests provide their own clock."""

import time
from typing import Protocol


class Clock(Protocol):
    """Seconds since 1970. The time may also go backwards."""

    def now(self) -> int: ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> int:
        return int(time.time())
