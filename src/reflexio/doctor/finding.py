"""What was examined, whether it is in order, and what to do."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """What was examined, whether it is in order, what was seen, and what to do.

    A finding that is in order may have a remedy too: what would be better.
    """

    part: str
    is_ok: bool
    detail: str
    remedy: str = ""


def age(seconds: int) -> str:
    """How long ago, in the largest whole unit.

    >>> age(59), age(7200), age(86_400 * 3)
    ('59 s', '2 h', '3 days')
    """
    for unit, size in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{max(0, seconds)} s"
