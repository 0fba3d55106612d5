"""What an organisation sees first: what came in, what was learned, what waits, and what it cost."""

from collections.abc import Sequence
from dataclasses import dataclass

from reflexio.jobs import token_budget
from reflexio.models.extraction import Spend
from reflexio.models.learning import Kind, PlaybookStatus
from reflexio.models.usage import Spent, Stall
from reflexio.organisations.configuration import stored_config
from reflexio.ports.storage import Days, LearningFilter, Store, Tx, WaitingUsers

DAY = 86_400
MOST_COUNTED = 10_001
"""Counting stops here: beyond, a page says "more than 10,000"."""


@dataclass(frozen=True)
class Day:
    """One day in UTC: `at` is its first second. `tokens` are those that models read and wrote."""

    at: int
    requests: int
    turns: int
    profiles: int
    user_playbooks: int
    agent_playbooks: int
    tokens: int


@dataclass(frozen=True)
class Overview:
    """The days, oldest first, and how things stand now. Counts stop at `MOST_COUNTED`."""

    days: list[Day]
    profiles: int
    user_playbooks: int
    approved: int
    in_review: int
    waiting: WaitingUsers
    stall: Stall | None
    set_aside: int
    tokens_today: int
    daily_token_budget: int | None
    is_budget_used_up: bool
    spend_by_model: list[Spend]

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever published or learned, as far as the days tell."""
        counts = self.profiles, self.user_playbooks, self.approved, self.in_review
        return not any(counts) and not any(day.turns for day in self.days)


async def overview(store: Store, now: int, period: int) -> Overview:
    """The last days of the period, including today."""
    return await store.read(lambda tx: _read(tx, now, period))


def _read(tx: Tx, now: int, period: int) -> Overview:
    days = Days(now // DAY - period + 1, now // DAY)
    requests, turns = tx.requests.count_by_day(days), tx.interactions.count_by_day(days)
    learned = {kind: tx.learnings.count_by_day(kind, days) for kind in Kind}
    spent = tx.spending.since(token_budget.day_of(now, days_ago=period - 1))
    tokens = _tokens_by_day(spent)
    config = stored_config(tx)
    return Overview(
        days=[
            Day(
                at=number * DAY,
                requests=requests.get(number, 0),
                turns=turns.get(number, 0),
                profiles=learned[Kind.PROFILE].get(number, 0),
                user_playbooks=learned[Kind.USER_PLAYBOOK].get(number, 0),
                agent_playbooks=learned[Kind.AGENT_PLAYBOOK].get(number, 0),
                tokens=tokens.get(token_budget.day_of(number * DAY), 0),
            )
            for number in range(days.first, days.last + 1)
        ],
        profiles=_count(tx, LearningFilter(Kind.PROFILE, alive_at=now)),
        user_playbooks=_count(tx, LearningFilter(Kind.USER_PLAYBOOK)),
        approved=_count(tx, LearningFilter(Kind.AGENT_PLAYBOOK, reviews=(PlaybookStatus.APPROVED,))),
        in_review=_count(tx, LearningFilter(Kind.AGENT_PLAYBOOK, reviews=(PlaybookStatus.PENDING,))),
        waiting=tx.users.all_waiting(),
        stall=tx.stalls.get(),
        set_aside=len(tx.windows.set_aside(MOST_COUNTED)),
        tokens_today=token_budget.tokens(token_budget.today(tx, now)),
        daily_token_budget=config.daily_token_budget,
        is_budget_used_up=not token_budget.allowed(tx, config, now),
        spend_by_model=_by_model(spent),
    )


def _count(tx: Tx, where: LearningFilter) -> int:
    return tx.learnings.count_up_to(where, MOST_COUNTED)


def _tokens_by_day(spent: Sequence[Spent]) -> dict[str, int]:
    tokens: dict[str, int] = {}
    for entry in spent:
        tokens[entry.day] = tokens.get(entry.day, 0) + token_budget.tokens(entry.spend)
    return tokens


def _by_model(spent: Sequence[Spent]) -> list[Spend]:
    """The sums of each model, the dearest first."""
    sums: dict[str, Spend] = {}
    for cost in (entry.spend for entry in spent):
        sums[cost.model] = sums.get(cost.model, Spend(cost.model)) + cost
    return sorted(sums.values(), key=token_budget.tokens, reverse=True)
