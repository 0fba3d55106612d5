"""What model calls cost, and whether today's token budget allows another one. Days are UTC."""

from datetime import UTC, datetime, timedelta
from math import inf

from reflexio.models.config import Config
from reflexio.models.extraction import Spend
from reflexio.ports.clock import Clock
from reflexio.ports.storage import Store, Tx

USED_UP = "The daily token budget is used up; raise it, up to the operator's cap, or run this again tomorrow."


def record(tx: Tx, spend: Spend, operation: str, now: int) -> None:
    """Adds to today's usage. Spend of zero leaves no entry."""
    if spend.calls or tokens(spend):
        tx.spending.add(day_of(now), operation, spend)


async def record_spend(store: Store, spend: Spend, clock: Clock, operation: str = "learn") -> None:
    """Records a call right after it was made, whatever becomes of its answer."""
    if spend.calls:
        now = clock.now()
        await store.write(lambda tx: record(tx, spend, operation, now))


def today(tx: Tx, now: int) -> Spend:
    """The sum over all operations and models."""
    return tx.spending.total(day_of(now))


def allowed(tx: Tx, config: Config, now: int) -> bool:
    """Whether another call may be made. A day's last call may exceed the budget: its cost is known afterwards."""
    return left(tx, config, now) > 0


def left(tx: Tx, config: Config, now: int) -> float:
    """Tokens left of today's budget, or of the operator's cap if that is smaller; infinite without both."""
    budgets = [budget for budget in (config.daily_token_budget, tx.spending.max_daily_tokens) if budget is not None]
    return min(budgets) - tokens(today(tx, now)) if budgets else inf


def tokens(spend: Spend) -> int:
    return spend.input_tokens + spend.output_tokens


def day_of(now: int, *, days_ago: int = 0) -> str:
    return (datetime.fromtimestamp(now, UTC) - timedelta(days=days_ago)).date().isoformat()
