"""What a change of the configuration would do: which settings change, and what follows for this organisation."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from reflexio.jobs import token_budget
from reflexio.models.config import MASK, Config
from reflexio.models.learning import Kind, PlaybookStatus
from reflexio.models.paging import Page
from reflexio.organisations.configuration import apply_changes, stored_config, with_secrets
from reflexio.ports.clock import Clock
from reflexio.ports.storage import LearningFilter, Store, Tx

LEARN, WEEK = "learn", 7
MOST_PENDING = 1000
"""Pending agent playbooks that are looked through."""
NAMED_BY = {
    "playbook_configs": "playbook_name",
    "profile_extractor_configs": "extractor_name",
    "tool_can_use": "tool_name",
}
"""Lists whose entries are told apart by a name and not by their place."""


@dataclass(frozen=True)
class SettingChange:
    """A setting by its path, such as `llm_config.concurrency`, before and after. None stands for no value."""

    path: str
    before: Any
    after: Any


@dataclass(frozen=True)
class ConfigurationFacts:
    """What the effects of a change depend on. `supports` counts the pending agent playbooks by type and users."""

    tokens_today: int = 0
    max_daily_tokens: int | None = None
    learning_calls: int = 0
    waiting_users: int = 0
    playbooks: Mapping[str, int] = field(default_factory=dict)
    supports: Mapping[tuple[str, int], int] = field(default_factory=dict)


@dataclass(frozen=True)
class ConfigurationPreview:
    """What would change and what would follow. `notes` are those that saving returns too."""

    after: Config
    changes: tuple[SettingChange, ...]
    effects: tuple[str, ...]
    notes: tuple[str, ...]


async def preview(store: Store, clock: Clock, raw: dict[str, Any]) -> tuple[Config, ConfigurationPreview]:
    """The configuration in force, and what a change would do. Raises InvalidRequest for a change that is not valid."""
    now = clock.now()

    def read(tx: Tx) -> tuple[Config, ConfigurationPreview]:
        before = stored_config(tx)
        after, notes = apply_changes(before, raw)
        changes = tuple(compare(before, after))
        effects = tuple(describe_effects(before, after, _read_facts(tx, before, after, now))) if changes else ()
        return before, ConfigurationPreview(after, changes, effects, tuple(notes))

    return await store.read(read)


def compare(before: Config, after: Config) -> Iterator[SettingChange]:
    """The settings that differ, in the order of the document. Secrets are masked."""
    old, new = (_flat(config.model_dump(mode="json")) for config in (before, after))
    old_secrets, new_secrets = (_flat(with_secrets(config)) for config in (before, after))
    for path in dict.fromkeys((*old, *new)):
        if old_secrets.get(path) == new_secrets.get(path):
            continue
        after_value = "a new secret" if old.get(path) == new.get(path) == MASK else new.get(path)
        yield SettingChange(path, old.get(path), after_value)


def _flat(value: Any, path: str = "", name_field: str = "") -> dict[str, Any]:
    """Each setting by its path. Entries of a named list go by their names."""
    if isinstance(value, dict) and value:
        found: dict[str, Any] = {}
        for key, item in value.items():
            found |= _flat(item, f"{path}.{key}".lstrip("."), NAMED_BY.get(key, ""))
        return found
    if isinstance(value, list) and name_field and value:
        found = {}
        for entry in value:
            found |= _flat(entry, f"{path}[{entry[name_field]}]")
        return found
    return {path: None if value in ({}, []) else value}


def _read_facts(tx: Tx, before: Config, after: Config, now: int) -> ConfigurationFacts:
    spent = tx.spending.since(token_budget.day_of(now, days_ago=WEEK - 1))
    pending = LearningFilter(Kind.AGENT_PLAYBOOK, reviews=(PlaybookStatus.PENDING,))
    # Rows are long: they are read only for a change that they bear on.
    waiting = (
        tx.learnings.page(pending, Page(MOST_PENDING)).rows if before.playbook_configs != after.playbook_configs else []
    )
    names = [entry.playbook_name for entry in before.playbook_configs]
    return ConfigurationFacts(
        tokens_today=token_budget.tokens(token_budget.today(tx, now)),
        max_daily_tokens=tx.spending.max_daily_tokens,
        learning_calls=sum(entry.spend.calls for entry in spent if entry.operation == LEARN),
        waiting_users=tx.users.all_waiting().count,
        playbooks={name: tx.learnings.count(LearningFilter(Kind.USER_PLAYBOOK, name=name)) for name in names},
        supports=Counter((row.name, int(row.details.get("support") or 0)) for row in waiting),
    )


def describe_effects(before: Config, after: Config, facts: ConfigurationFacts) -> Iterator[str]:
    """The effects in sentences, the most important first."""
    yield from _budget(before, after, facts)
    yield from _windows(before, after, facts)
    yield from _types(before, after, facts)
    yield from _aggregation(before, after, facts)
    yield from _model(before, after)
    yield from _context(before, after)
    yield from _redaction(before, after)
    yield from _optimiser(before, after)


def _budget(before: Config, after: Config, facts: ConfigurationFacts) -> Iterator[str]:
    budget = after.daily_token_budget
    if budget == before.daily_token_budget:
        return
    if facts.max_daily_tokens is not None and (budget is None or budget > facts.max_daily_tokens):
        yield f"The cap of this server's operator holds: {facts.max_daily_tokens:,} tokens a day."
        budget = facts.max_daily_tokens
    if budget is None:
        yield "Models may use any number of tokens."
    elif facts.tokens_today >= budget:
        yield (
            f"Today's {facts.tokens_today:,} tokens use the budget up: with a model, learning waits until tomorrow "
            "(UTC). What is published meanwhile is kept."
        )
    else:
        yield f"{budget - facts.tokens_today:,} tokens are left for today (UTC)."


def _windows(before: Config, after: Config, facts: ConfigurationFacts) -> Iterator[str]:
    old, new = before.stride_size, after.stride_size
    if new != old:
        yield f"A user is learned from after {_turns(new)} instead of {old}, or when the session ends."
        if facts.learning_calls:
            expected = max(1, round(facts.learning_calls * old / new))
            yield (
                f"In the last {WEEK} days learning made {facts.learning_calls:,} model calls. Long conversations would "
                f"need about {expected:,}; short ones as many as before."
            )
    if after.window_size != before.window_size:
        more = "more" if after.window_size > before.window_size else "less"
        yield f"Each window shows the learner up to {_turns(after.window_size)}: {more} to read, and {more} tokens."
    quiet = after.extraction_idle_timeout_seconds
    if quiet != before.extraction_idle_timeout_seconds:
        yield (
            f"Turns that fill no window are learned {quiet:,} seconds after the last one."
            if quiet
            else "Turns that fill no window wait until the session ends."
        )
    changed = (new, quiet) != (old, before.extraction_idle_timeout_seconds)
    if changed and facts.waiting_users:
        users = _count(facts.waiting_users, "user has", "users have")
        yield f"{users} turns that wait; this decides when they are due."


def _types(before: Config, after: Config, facts: ConfigurationFacts) -> Iterator[str]:
    old, new = ([entry.playbook_name for entry in config.playbook_configs] for config in (before, after))
    for name in old:
        if name not in new:
            kept = _count(facts.playbooks.get(name, 0), "user playbook of it stays", "user playbooks of it stay")
            yield f"Playbooks of the type {name!r} are not learned any more; {kept}."
    for name in new:
        if name not in old:
            yield f"Playbooks of the type {name!r} are learned from the next window on; a rerun reads earlier turns."
    if before.profile_extractor_configs and not after.profile_extractor_configs:
        yield "No more profiles are learned; those there are stay."
    if before.playbook_configs and not after.playbook_configs:
        yield "Nothing is learned that could be shared between users."


def _aggregation(before: Config, after: Config, facts: ConfigurationFacts) -> Iterator[str]:
    old = {entry.playbook_name: entry.playbook_aggregator_config for entry in before.playbook_configs}
    for entry in after.playbook_configs:
        name, now = entry.playbook_name, entry.playbook_aggregator_config
        was = old.get(name, now)
        if now.min_distinct_users != was.min_distinct_users:
            fewer = sum(
                count for (of_type, users), count in facts.supports.items()
                if of_type == name and 0 < users < now.min_distinct_users
            )  # fmt: skip
            users = _count(now.min_distinct_users, "user", "users")
            yield f"An agent playbook of the type {name!r} is proposed once {users} taught it."
            if fewer:
                proposals = _count(fewer, "proposal that waits has", "proposals that wait have")
                yield f"{proposals} fewer; they stay in the queue."
        if now.reaggregation_trigger_count != was.reaggregation_trigger_count:
            count = _count(now.reaggregation_trigger_count, "new user playbook", "new user playbooks")
            yield f"Aggregation of {name!r} starts after {count} instead of {was.reaggregation_trigger_count}."


def _model(before: Config, after: Config) -> Iterator[str]:
    old, new = _model_of(before), _model_of(after)
    if old != new:
        yield f"The next windows are learned with {new or 'the model of the server'}; what was learned stays."


def _model_of(config: Config) -> str:
    if config.api_key_config and config.api_key_config.custom_endpoint:
        return config.api_key_config.custom_endpoint.model
    return (config.llm_config.generation_model_name if config.llm_config else None) or ""


def _context(before: Config, after: Config) -> Iterator[str]:
    if after.context_always_share != before.context_always_share:
        old, new = (round(1000 * config.context_always_share) for config in (before, after))
        yield f"Of a context of 1,000 tokens, what always holds may take {new} instead of {old}, from the next call on."


def _redaction(before: Config, after: Config) -> Iterator[str]:
    added = [kind.value for kind in after.redaction if kind not in before.redaction]
    removed = [kind.value for kind in before.redaction if kind not in after.redaction]
    if added:
        yield f"From now on {', '.join(added)} is replaced by a mark before it is stored. What is there stays as it is."
    if removed:
        yield f"From now on {', '.join(removed)} is stored as it was published."


def _optimiser(before: Config, after: Config) -> Iterator[str]:
    old, new = before.playbook_optimizer_config, after.playbook_optimizer_config
    if new.enabled and not old.enabled:
        yield (
            f"After each aggregation, pending playbooks are tried with your assistant: at most {new.max_metric_calls} "
            "evaluations each, which are calls to your assistant and to the model."
        )
    if old.enabled and not new.enabled:
        yield "No new search for better wording starts; one that runs goes on."


def _turns(count: int) -> str:
    return _count(count, "turn", "turns")


def _count(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"
