"""The axes of charts: nice ticks, numbers short enough for an axis, and which slots of a time get a label."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10

NICE = (1.0, 2.0, 2.5, 5.0, 10.0)
SHORT = ((1e9, "b"), (1e6, "m"), (1e3, "k"))


@dataclass(frozen=True)
class Scale:
    """A numeric axis from its first tick to its last."""

    ticks: tuple[float, ...]

    @classmethod
    def covering(cls, values: Sequence[float], *, count: int = 4, whole: bool = False, zero: bool = True) -> "Scale":
        """An axis with about `count` steps that holds all values, and zero unless `zero` is false.

        >>> Scale.covering([3, 87]).ticks
        (0.0, 25.0, 50.0, 75.0, 100.0)
        """
        known = [value for value in values if isfinite(value)]
        low, high = min(known, default=0.0), max(known, default=1.0)
        if zero:
            low, high = min(low, 0.0), max(high, 0.0)
        if low == high:
            low, high = (low, low + 1.0) if zero else (low - 0.5, high + 0.5)
        step = nice_step((high - low) / count)
        if whole and step != round(step):
            step = 1.0 if step < 1 else 5.0
        first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
        return cls(tuple(round(place * step, 10) for place in range(first, last + 1)))

    def share(self, value: float) -> float:
        """Where a value is between the first tick (0) and the last (1)."""
        low, high = self.ticks[0], self.ticks[-1]
        return min(1.0, max(0.0, (value - low) / (high - low)))


def nice_step(least: float) -> float:
    """The next 1, 2, 2.5, 5 or 10 times a power of ten.

    >>> nice_step(0.03), nice_step(21), nice_step(7)
    (0.05, 25.0, 10.0)
    """
    power = 10.0 ** floor(log10(least))
    return float(next(power * step for step in NICE if power * step >= least * (1 - 1e-9)))


def short_number(value: float) -> str:
    """A number for an axis.

    >>> [short_number(value) for value in (0, 0.25, 12, 1500, 2_000_000, -0.5)]
    ['0', '0.25', '12', '1.5k', '2m', '−0.5']
    """
    size, sign = abs(value), "−" if value < 0 else ""
    for least, letter in SHORT:
        if size >= least:
            return f"{sign}{_three_digits(size / least)}{letter}"
    return f"{sign}{_three_digits(size)}"


def exact_number(value: float) -> str:
    """A number for people who want it exactly: whole numbers with thousands, others with three digits or more.

    >>> exact_number(12345), exact_number(0.12345), exact_number(1234.5)
    ('12,345', '0.123', '1,234.5')
    """
    sign, size = "−" if value < 0 else "", abs(value)
    if size == round(size):
        return f"{sign}{size:,.0f}"
    return f"{sign}{size:,.1f}" if size >= 100 else f"{sign}{_three_digits(size)}"


def _three_digits(size: float) -> str:
    """Three digits where the number has a fraction, never an exponent."""
    if size >= 100:
        return f"{size:,.0f}"
    return f"{size:.3g}" if size >= 0.001 else f"{size:.6f}".rstrip("0").rstrip(".")


def labelled_slots(count: int, most: int = 4) -> list[int]:
    """Which of `count` slots get a label, so that labels do not touch on a phone; the last one always does.

    >>> labelled_slots(28)
    [6, 13, 20, 27]
    """
    step = max(1, ceil(count / most))
    return list(range((count - 1) % step, count, step))
