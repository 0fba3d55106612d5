"""What a change of the configuration would do is told before it is saved, in sentences about this organisation."""

from pathlib import Path
from typing import Any

import pytest

from reflexio.errors import InvalidRequest
from reflexio.jobs.token_budget import day_of
from reflexio.models.config import Config
from reflexio.models.extraction import Spend
from reflexio.models.learning import Kind, Learning
from reflexio.organisations import configuration
from reflexio.organisations.configuration import apply_changes
from reflexio.organisations.configuration_preview import (
    ConfigurationFacts,
    SettingChange,
    compare,
    describe_effects,
    preview,
)
from reflexio.ports.clock import SystemClock
from reflexio.storage.sqlite import open_sqlite

CLOCK = SystemClock()
TONE = {"playbook_name": "tone", "playbook_definition_prompt": "How to speak"}
SPEED = {"playbook_name": "speed", "playbook_definition_prompt": "When to hurry"}


def changes(before: Config, **raw: Any) -> list[SettingChange]:
    return list(compare(before, apply_changes(before, raw)[0]))


def effects(facts: ConfigurationFacts, before: Config | None = None, **raw: Any) -> str:
    before = before or Config()
    return "\n".join(describe_effects(before, apply_changes(before, raw)[0], facts))


def test_only_what_differs_is_a_change() -> None:
    assert changes(Config(), window_size=10) == []
    assert changes(Config(), window_size=20) == [SettingChange("window_size", 10, 20)]
    assert changes(Config(), redaction=["email"]) == [SettingChange("redaction", None, ["email"])]


def test_entries_of_a_list_are_compared_by_their_names() -> None:
    before = Config(playbook_configs=[TONE, SPEED])
    assert changes(before, playbook_configs=[SPEED, TONE]) == []
    edited = changes(before, playbook_configs=[SPEED, {**TONE, "playbook_definition_prompt": "How to greet"}])
    assert edited == [
        SettingChange("playbook_configs[tone].playbook_definition_prompt", "How to speak", "How to greet")
    ]


def test_a_secret_is_never_shown() -> None:
    before = Config.model_validate({"api_key_config": {"openai": {"api_key": "old-secret"}}})
    new = changes(before, api_key_config={"openai": {"api_key": "new-secret"}})
    assert [change.path for change in new] == ["api_key_config.openai.api_key"]
    assert "secret" in str(new[0].after)
    assert "old-secret" not in str(new)
    assert "new-secret" not in str(new)


@pytest.mark.parametrize(
    ("budget", "facts", "sentence"),
    [
        (1000, ConfigurationFacts(tokens_today=400), "600 tokens are left"),
        (400, ConfigurationFacts(tokens_today=400), "learning waits until tomorrow"),
        (None, ConfigurationFacts(), "any number"),
        (None, ConfigurationFacts(max_daily_tokens=50, tokens_today=20), "30 tokens are left"),
        (90, ConfigurationFacts(max_daily_tokens=50, tokens_today=60), "The cap of this server's operator holds: 50"),
    ],
)
def test_a_budget_is_compared_with_today(budget: int | None, facts: ConfigurationFacts, sentence: str) -> None:
    assert sentence in effects(facts, Config(daily_token_budget=7), daily_token_budget=budget)


def test_a_longer_stride_is_told_in_calls() -> None:
    words = effects(ConfigurationFacts(learning_calls=80), window_size=20, stride_size=16)
    assert "after 16 turns instead of 8" in words
    assert "80 model calls" in words
    assert "about 40" in words


def test_a_removed_type_says_what_stays() -> None:
    before = Config(playbook_configs=[TONE, SPEED])
    words = effects(ConfigurationFacts(playbooks={"speed": 3}), before, playbook_configs=[TONE])
    assert "'speed' are not learned any more; 3 user playbooks of it stay" in words


def test_proposals_with_fewer_users_are_counted() -> None:
    before = Config(playbook_configs=[TONE])
    entry = {**TONE, "playbook_aggregator_config": {"min_distinct_users": 3}}
    facts = ConfigurationFacts(supports={("tone", 2): 4, ("tone", 3): 5, ("speed", 1): 9, ("tone", 0): 1})
    assert "4 proposals that wait have fewer" in effects(facts, before, playbook_configs=[entry])


def test_a_change_without_effect_on_others_says_nothing() -> None:
    assert effects(ConfigurationFacts(learning_calls=9, tokens_today=9), agent_context_prompt="A shop") == ""


async def test_a_preview_stores_nothing_and_refuses_what_saving_refuses(tmp_path: Path) -> None:
    database = open_sqlite(tmp_path / "reflexio.db")
    store, now = database.of("org"), CLOCK.now()
    playbook = Learning(Kind.USER_PLAYBOOK, "Be brief.", name="tone", user_id="ann")
    await configuration.change(store, CLOCK, {"playbook_configs": [TONE]})
    await store.write(lambda tx: tx.learnings.add([playbook]))
    await store.write(lambda tx: tx.spending.add(day_of(now), "learn", Spend("m", 12, 100, 20)))
    before, planned = await preview(store, CLOCK, {"playbook_configs": [], "stride_size": 4, "daily_token_budget": 100})
    words = "\n".join(planned.effects)
    assert "1 user playbook of it stays" in words
    assert "12 model calls" in words
    assert "learning waits until tomorrow" in words
    assert await store.read(configuration.stored_config) == before
    with pytest.raises(InvalidRequest):
        await preview(store, CLOCK, {"stride_size": 4000})
    await database.close()
