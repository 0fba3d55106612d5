"""Usage and stalls on the wire: what learning costs, and why it waits."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from reflexio.models.extraction import Spend
from reflexio.models.wire import ResponseModel, SuccessResponse

StallReason = Literal["billing_error", "auth_error", "provider_error"]
LONGEST_MESSAGE = 1000


@dataclass(frozen=True)
class Stall:
    """Why learning waits, since when, and whether a person was notified."""

    reason: StallReason
    message: str
    since: int
    notified: bool = False


class StallStateResponse(ResponseModel):
    """Whether learning waits for the provider, and why."""

    stalled: bool = False
    reason: Literal["billing_error", "auth_error"] | None = None
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
            # Published clients know two reasons; the message says every one in words.
            reason=None if stall.reason == "provider_error" else stall.reason,
            stalled_at=datetime.fromtimestamp(stall.since, UTC),
            notified_in_cc=stall.notified,
            error_message=stall.message,
        )


class MarkNotifiedResponse(ResponseModel):
    """Whether a person has been notified of a stall."""

    notified_in_cc: bool


@dataclass(frozen=True)
class Spent:
    """The spend of one operation on a day (UTC, ISO 8601)."""

    day: str
    operation: str
    spend: Spend


class UsageEntry(ResponseModel):
    """Calls and tokens of one day, operation and model."""

    day: str
    operation: str
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    estimated_calls: int = 0

    @classmethod
    def of(cls, spent: Spent) -> "UsageEntry":
        cost = spent.spend
        return cls(
            day=spent.day,
            operation=spent.operation,
            model=cost.model,
            calls=cost.calls,
            input_tokens=cost.input_tokens,
            output_tokens=cost.output_tokens,
            estimated_calls=cost.estimated_calls,
        )


class UsageResponse(SuccessResponse):
    """The usage, and whether today's budget is used up."""

    usage: list[UsageEntry] = []
    tokens_today: int = 0
    daily_token_budget: int | None = None
    max_daily_tokens: int | None = None
    budget_used_up: bool = False
