"""What time it is. Tests bring their own."""

import time
from typing import Protocol


class Clock(Protocol):
    """Seconds since 1970, never assumed to go only forward."""

    def now(self) -> int: ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> int:
        return int(time.time())
