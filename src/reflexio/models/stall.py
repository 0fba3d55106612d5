"""Stalls on the wire: the provider refuses the key or the bill, and learning waits."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from reflexio.models.shape import Answered

StallReason = Literal["billing_error", "auth_error"]
LONGEST_MESSAGE = 1000


@dataclass(frozen=True)
class Stall:
    """Why learning waits, since when, and whether a person was notified."""

    reason: StallReason
    message: str
    since: int
    notified: bool = False


class StallStateResponse(Answered):
    """Whether learning waits for the provider, and why."""

    stalled: bool = False
    reason: StallReason | None = None
    stalled_at: datetime | None = None
    reset_estimate: datetime | None = None
    notified_in_cc: bool = False
    error_message: str | None = None

    @classmethod
    def of(cls, stall: Stall | None) -> "StallStateResponse":
        if stall is None:
            return cls()
        return cls(
            stalled=True,
            reason=stall.reason,
            stalled_at=datetime.fromtimestamp(stall.since, UTC),
            notified_in_cc=stall.notified,
            error_message=stall.message,
        )


class MarkNotifiedResponse(Answered):
    """Whether a person has been notified of a stall."""

    notified_in_cc: bool
