"""What stops learning for a while: a provider that refuses, and a budget that is used up."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reflexio.jobs import token_budget
from reflexio.learning import stall
from reflexio.models.config import Config
from reflexio.models.extraction import Spend
from reflexio.models.usage import Stall, StallStateResponse, UsageEntry
from reflexio.organisations import configuration
from reflexio.organisations.usage import usage
from reflexio.ports.storage import Store
from reflexio.storage.sqlite import open_sqlite


class Clock:
    def __init__(self, moment: str) -> None:
        self.at = int(datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp())

    def now(self) -> int:
        return self.at


EVENING, MIDNIGHT = Clock("2026-03-31T23:59:59"), Clock("2026-04-01T00:00:00")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    database = open_sqlite(tmp_path / "reflexio.db")
    yield database.of("default")
    await database.close()


async def test_the_same_reason_again_is_the_same_stall(store: Store) -> None:
    await store.write(lambda tx: stall.enter(tx, "auth_error", "401", 10))
    assert await store.write(stall.mark_notified)
    await store.write(lambda tx: stall.enter(tx, "auth_error", "401 again", 20))
    assert await store.read(stall.state) == Stall("auth_error", "401 again", since=10, notified=True)


async def test_another_reason_is_told_anew(store: Store) -> None:
    await store.write(lambda tx: stall.enter(tx, "auth_error", "401", 10))
    await store.write(stall.mark_notified)
    await store.write(lambda tx: stall.enter(tx, "billing_error", "402", 20))
    assert await store.read(stall.state) == Stall("billing_error", "402", since=20, notified=False)


async def test_what_is_cleared_is_gone_with_its_notice(store: Store) -> None:
    await store.write(lambda tx: stall.enter(tx, "auth_error", "401", 10))
    await store.write(stall.mark_notified)
    assert await store.write(stall.clear)
    assert not await store.write(stall.clear)
    assert not await store.write(stall.mark_notified)
    assert await store.read(stall.state) is None
    assert not (await store.write(lambda tx: stall.enter(tx, "auth_error", "401", 30))).notified


async def test_a_long_message_is_cut(store: Store) -> None:
    entered = await store.write(lambda tx: stall.enter(tx, "auth_error", "é" * 5000, 10))
    assert entered.message == "é" * 1000


def test_times_of_a_stall_are_iso() -> None:
    told = StallStateResponse.of(Stall("auth_error", "401", since=EVENING.at)).model_dump(mode="json")
    assert told == {
        "stalled": True,
        "reason": "auth_error",
        "stalled_at": "2026-03-31T23:59:59Z",
        "reset_estimate": None,
        "notified_in_cc": False,
        "error_message": "401",
    }


async def test_today_ends_at_midnight_utc(store: Store) -> None:
    for cost, operation in ((Spend("m", 1, 10, 1), "extract"), (Spend("n", 2, 20, 2), "consolidate")):
        await store.write(lambda tx: token_budget.record(tx, cost, operation, EVENING.at))  # noqa: B023
    assert await store.read(lambda tx: token_budget.today(tx, EVENING.at)) == Spend("", 3, 30, 3)
    assert await store.read(lambda tx: token_budget.today(tx, MIDNIGHT.at)) == Spend()


@pytest.mark.parametrize(
    ("budget", "allowed"), [(None, True), (12, True), (11, False), (1, False), (0, False)], ids=str
)
async def test_a_budget_allows_calls_until_it_is_used_up(store: Store, budget: int | None, allowed: bool) -> None:
    config = Config(daily_token_budget=budget)
    await store.write(lambda tx: token_budget.record(tx, Spend("m", 1, 10, 1), "extract", EVENING.at))
    assert await store.read(lambda tx: token_budget.allowed(tx, config, EVENING.at)) is allowed
    assert await store.read(lambda tx: token_budget.allowed(tx, config, MIDNIGHT.at)) is (budget != 0)


async def test_what_cost_nothing_leaves_no_entry(store: Store) -> None:
    await store.write(lambda tx: token_budget.record(tx, Spend("local"), "extract", EVENING.at))
    assert (await usage(store, EVENING, 1)).usage == []


async def test_usage_tells_the_days_asked_for_and_the_budget(store: Store) -> None:
    await configuration.change(store, EVENING, {"daily_token_budget": 5})
    for clock in (EVENING, MIDNIGHT):
        await store.write(lambda tx, now=clock.at: token_budget.record(tx, Spend("m", 1, 4, 1), "extract", now))  # type: ignore[misc]
    entries = [
        UsageEntry(day=day, operation="extract", model="m", calls=1, input_tokens=4, output_tokens=1)
        for day in ("2026-04-01", "2026-03-31")
    ]
    one, two = await usage(store, MIDNIGHT, 1), await usage(store, MIDNIGHT, 2)
    assert (one.usage, two.usage) == (entries[:1], entries)
    assert (one.tokens_today, one.daily_token_budget, one.budget_used_up) == (5, 5, True)
    await configuration.change(store, EVENING, {"daily_token_budget": None})
    assert not (await usage(store, MIDNIGHT, 1)).budget_used_up


@pytest.mark.parametrize(
    ("budget", "spent", "is_allowed"),
    [(None, 4, True), (None, 5, False), (10**15, 5, False), (3, 4, False), (3, 2, True)],
)
async def test_no_organisation_lifts_the_operators_cap(
    tmp_path: Path, budget: int | None, spent: int, is_allowed: bool
) -> None:
    database = open_sqlite(tmp_path / "capped.db", max_daily_tokens=5)
    store = database.of("org")
    response = await configuration.change(store, EVENING, {"daily_token_budget": budget, "window_size": 12})
    assert ("above 5, the cap" in str(response.msg)) == (budget == 10**15)
    await store.write(lambda tx: token_budget.record(tx, Spend("m", 1, spent, 0), "extract", EVENING.at))
    shown = await usage(store, EVENING, 1)
    assert (shown.max_daily_tokens, shown.budget_used_up) == (5, not is_allowed)
    # Each organisation has a cap of its own.
    assert not (await usage(database.of("neighbour"), EVENING, 1)).budget_used_up
    await database.close()


async def test_a_cap_of_nothing_allows_nothing(tmp_path: Path) -> None:
    database = open_sqlite(tmp_path / "capped.db", max_daily_tokens=0)
    assert (await usage(database.of("org"), EVENING, 1)).budget_used_up
    await database.close()
