"""Spend: what learning costs, and whether today's budget allows more. Days are UTC."""

from datetime import UTC, datetime, timedelta
from math import inf

from reflexio.models.config import Config
from reflexio.models.learned import Spend
from reflexio.models.usage import Spent, UsageEntry, UsageResponse
from reflexio.ports.clock import Clock
from reflexio.ports.storage import Store, Tx
from reflexio.usecases.configure import stored


def record(tx: Tx, spend: Spend, operation: str, now: int) -> None:
    """Adds to today's account. What cost nothing leaves no entry."""
    if spend.calls or tokens(spend):
        tx.spending.add(_day(now), operation, spend)


def today(tx: Tx, now: int) -> Spend:
    """All of today, whatever the operation and the model."""
    return tx.spending.total(_day(now))


def allowed(tx: Tx, config: Config, now: int) -> bool:
    """Whether another call may be made. The last call of a day may go beyond the budget, as its cost shows after it."""
    return left(tx, config, now) > 0


def left(tx: Tx, config: Config, now: int) -> float:
    """Tokens that today's budget still has; without a budget there is no end to them."""
    budget = config.daily_token_budget
    return inf if budget is None else budget - tokens(today(tx, now))


def tokens(spend: Spend) -> int:
    return spend.input_tokens + spend.output_tokens


async def usage(store: Store, clock: Clock, days: int) -> UsageResponse:
    """The last days with today, newest first."""
    now = clock.now()

    def look(tx: Tx) -> UsageResponse:
        config = stored(tx)
        spent: list[Spent] = tx.spending.since(_day(now, ago=days - 1))
        return UsageResponse(
            usage=[UsageEntry.of(each) for each in spent],
            tokens_today=tokens(today(tx, now)),
            daily_token_budget=config.daily_token_budget,
            budget_used_up=not allowed(tx, config, now),
        )

    return await store.read(look)


def _day(now: int, *, ago: int = 0) -> str:
    return (datetime.fromtimestamp(now, UTC) - timedelta(days=ago)).date().isoformat()
