"""Withdraws an erased user's part in agent playbooks. The playbooks stay: they belong to everybody."""

import dataclasses
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import Any

from reflexio.aggregation.service import aggregator_settings
from reflexio.models.config import PlaybookAggregatorConfig
from reflexio.models.learning import Kind, Learning, PlaybookStatus, Status
from reflexio.organisations.configuration import stored_config
from reflexio.ports.storage import LearningFilter, LineageEvent, Store, TurnFilter, Tx
from reflexio.retrieval.filters import all_pages


@dataclass(frozen=True)
class UserPart:
    """The playbooks and turns of a user, by which the user's part in agent playbooks is found."""

    playbooks: Set[int]
    turns: Set[int]

    @classmethod
    def read(cls, tx: Tx, user_id: str) -> "UserPart":
        own = LearningFilter(Kind.USER_PLAYBOOK, user_id=user_id, statuses=None)
        turns = tx.interactions.newest(TurnFilter(user_id), tx.interactions.count(user_id))
        return cls({row.id for row in all_pages(tx, own)}, set(turns))

    def involved(self, tx: Tx, now: int) -> list[int]:
        """The agent playbooks that the user has a part in: the rest of them is read without keeping writers waiting."""
        if not self.playbooks and not self.turns:
            return []
        rows = all_pages(tx, LearningFilter(Kind.AGENT_PLAYBOOK, statuses=None))
        return [row.id for row in rows if _without_user(row, self.playbooks, self.turns, now) is not row]


async def withdraw_user(
    store: Store, user_id: str, now: int, *, withdraw_unsupported: bool, also: Callable[[Tx], None]
) -> int:
    """Removes the windows of a user from agent playbooks, before the rows of the user are removed.

    A pending playbook that fewer than `min_distinct_users` still support is archived; with `withdraw_unsupported`,
    also each playbook that fewer users than `min_cluster_size` support. Returns how many. What nobody supports any more
    is deleted, unless it is current and a person approved it.

    `also` removes the user's playbooks in the same transaction: after that nothing new can be made of them.
    """
    part = await store.read(lambda tx: UserPart.read(tx, user_id))
    withdrawn, removes = 0, [also]
    while True:
        involved = await store.read(lambda tx: part.involved(tx, now))
        if not involved and not removes:
            return withdrawn

        def withdraw(tx: Tx, involved: list[int] = involved, removes: list[Callable[[Tx], None]] = removes) -> int:
            count = _withdraw(tx, part, involved, now, withdraw_unsupported=withdraw_unsupported)
            for remove in removes:
                remove(tx)
            return count

        withdrawn += await store.write(withdraw)
        removes = []


def _withdraw(tx: Tx, part: UserPart, numbers: Sequence[int], now: int, *, withdraw_unsupported: bool) -> int:
    config, withdrawn = stored_config(tx), 0
    for row in tx.learnings.many(numbers).values():
        remaining = _without_user(row, part.playbooks, part.turns, now)
        if remaining is row:
            continue
        least = _least_support(row, aggregator_settings(config, row.name), withdraw_unsupported)
        is_withdrawn = row.status is Status.CURRENT and remaining.details["support"] < least
        if not remaining.details["support"] and (is_withdrawn or row.status is not Status.CURRENT):
            # Nobody else said it: the wording is the user's.
            tx.learnings.remove(LearningFilter(Kind.AGENT_PLAYBOOK, ids=(row.id,), statuses=None))
            withdrawn += is_withdrawn
            continue
        if is_withdrawn:
            remaining = dataclasses.replace(remaining, status=Status.ARCHIVED)
            reason = f"fewer than {least} users support it" if least > 1 else "nobody supports it any more"
            moved = (row.status.value, remaining.status.value)
            tx.learnings.note(LineageEvent(row.id, row.kind, "withdrawn", now, "", reason, *moved))
            withdrawn += 1
        tx.learnings.replace(remaining)
        if row.cluster and row.status is Status.CURRENT:
            _summarise_again(tx, row, now)
    return withdrawn


def _least_support(row: Learning, settings: PlaybookAggregatorConfig, withdraw_unsupported: bool) -> int:
    """The number of users below which the playbook is withdrawn. What a person approved stays unless told otherwise."""
    if withdraw_unsupported:
        return max(settings.min_cluster_size, settings.min_distinct_users)
    return settings.min_distinct_users if row.review is PlaybookStatus.PENDING and row.cluster else 0


def _summarise_again(tx: Tx, row: Learning, now: int) -> None:
    """Schedules its cluster for another summary: the wording may be the user's own."""
    place = (row.agent_version, row.name)
    tx.pools.put(dataclasses.replace(tx.pools.get(*place), retry_at=now))
    tx.pools.put_clusters(*place, dataclasses.replace(tx.pools.cluster(*place, row.cluster), written=""))


def _without_user(row: Learning, playbooks: Set[int], turns: Set[int], now: int) -> Learning:
    """The same row when the user had no part in it."""
    windows = row.details.get("source_windows", [])
    kept = [rest for window in windows if (rest := _window_without_user(window, playbooks, turns))]
    if kept == windows:
        return row
    supported = row.details.get("support", len(windows))
    # A window that only loses turns is somebody else's.
    support = max(0, supported - 1) if len(kept) < len(windows) else supported
    # The quoted words are dropped: it is not known which user said them.
    details = {name: value for name, value in row.details.items() if name != "source_span"}
    return dataclasses.replace(row, details={**details, "source_windows": kept, "support": support}, modified_at=now)


def _window_without_user(window: dict[str, Any], playbooks: Set[int], turns: Set[int]) -> dict[str, Any] | None:
    """The window without the user's turns; None when it was learned from the user."""
    cited = window.get("source_interaction_ids", [])
    rest = [turn for turn in cited if turn not in turns]
    if window["user_playbook_id"] in playbooks or (cited and not rest):
        return None
    return {**window, "source_interaction_ids": rest}
