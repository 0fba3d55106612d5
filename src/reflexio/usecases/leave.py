"""Leave: a user's part in agent playbooks goes with the user. The playbooks stay: they belong to everybody."""

import dataclasses
from collections.abc import Set
from typing import Any

from reflexio.models.learning import Kind, Learning
from reflexio.models.status import Status
from reflexio.ports.storage import LearningFilter, LineageEvent, TurnScope, Tx
from reflexio.retrieval.walk import every
from reflexio.usecases.aggregate import settings_of
from reflexio.usecases.configure import stored


def leave(tx: Tx, user_id: str, now: int, *, withdraw_unsupported: bool) -> int:
    """Takes the windows of a user out of agent playbooks, before the rows of the user are removed.

    Those that fewer users than `min_cluster_size` still stand behind are archived if so wished; tells how many.
    """
    theirs = LearningFilter(Kind.USER_PLAYBOOK, user_id=user_id, statuses=None)
    playbooks = {row.id for row in every(tx, theirs)}
    turns = {each.turn.interaction_id for each in tx.interactions.within(TurnScope(), user_id)}
    if not playbooks and not turns:
        return 0
    config, withdrawn = stored(tx), 0
    # Read as a whole first: what is changed would come up again under another place in the list.
    for row in list(every(tx, LearningFilter(Kind.AGENT_PLAYBOOK, statuses=None))):
        left = _without(row, playbooks, turns, now)
        if left is row:
            continue
        least = settings_of(config, row.name).min_cluster_size
        if withdraw_unsupported and row.status is Status.CURRENT and left.details["support"] < least:
            left = dataclasses.replace(left, status=Status.ARCHIVED)
            why = f"fewer than {least} users stand behind it"
            moved = (row.status.value, left.status.value)
            tx.learnings.note(LineageEvent(row.id, row.kind, "withdrawn", now, "", why, *moved))
            withdrawn += 1
        tx.learnings.replace(left)
        if row.cluster and row.status is Status.CURRENT:
            _look_again(tx, row, now)
    return withdrawn


def _look_again(tx: Tx, row: Learning, now: int) -> None:
    """Its wording may be the user's own: what is left of its cluster is written anew."""
    place = (row.agent_version, row.name)
    tx.pools.put(dataclasses.replace(tx.pools.get(*place), retry_at=now))
    tx.pools.note(*place, dataclasses.replace(tx.pools.cluster(*place, row.cluster), written=""))


def _without(row: Learning, playbooks: Set[int], turns: Set[int], now: int) -> Learning:
    """The same row when the user had no part in it."""
    windows = row.details.get("source_windows", [])
    kept = [left for each in windows if (left := _window(each, playbooks, turns))]
    if kept == windows:
        return row
    support = max(0, row.details.get("support", len(windows)) - 1)
    # What it quotes was said by somebody, and nobody can say any more by whom.
    details = {name: value for name, value in row.details.items() if name != "source_span"}
    return dataclasses.replace(row, details={**details, "source_windows": kept, "support": support}, modified_at=now)


def _window(window: dict[str, Any], playbooks: Set[int], turns: Set[int]) -> dict[str, Any] | None:
    """What is left of a window; nothing when it was learned from the user."""
    said = window.get("source_interaction_ids", [])
    left = [each for each in said if each not in turns]
    if window["user_playbook_id"] in playbooks or (said and not left):
        return None
    return {**window, "source_interaction_ids": left}
