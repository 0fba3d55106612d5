"""Usage on the wire: model calls and tokens by day, operation and model."""

from dataclasses import dataclass

from reflexio.models.learned import Spend
from reflexio.models.shape import Answered


@dataclass(frozen=True)
class Spent:
    """The spend of one operation on a day (UTC, ISO 8601)."""

    day: str
    operation: str
    spend: Spend


class UsageEntry(Answered):
    """Calls and tokens of one day, operation and model."""

    day: str
    operation: str
    model: str
    calls: int
    input_tokens: int
    output_tokens: int

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
        )


class UsageResponse(Answered):
    """The usage, and whether today's budget is used up."""

    success: bool = True
    usage: list[UsageEntry] = []
    tokens_today: int = 0
    daily_token_budget: int | None = None
    budget_used_up: bool = False
