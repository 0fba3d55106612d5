"""Time ranges."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TimeRange:
    """Seconds since 1970, both ends inclusive; None is open."""

    start: int | None = None
    end: int | None = None


ALWAYS = TimeRange()
