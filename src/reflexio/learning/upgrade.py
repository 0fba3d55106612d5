"""Upgrade and downgrade: the pending generation of learnings replaces the current one, or the archived one returns.

A scope is a filter; every row that is read, moved or deleted passes it.
"""

from collections.abc import Mapping
from dataclasses import replace

from reflexio.models.learning import Kind, Status
from reflexio.models.operation import (
    Downgrade,
    DowngradeProfilesRequest,
    DowngradeUserPlaybooksRequest,
    Upgrade,
    UpgradeProfilesRequest,
    UpgradeUserPlaybooksRequest,
)
from reflexio.ports.storage import LearningFilter, LineageEvent, Tx

Moved = Mapping[int, Status]


def profile_scope(request: UpgradeProfilesRequest | DowngradeProfilesRequest) -> LearningFilter:
    keys = None if request.profile_ids is None else tuple(request.profile_ids)
    return LearningFilter(Kind.PROFILE, user_id=request.user_id, keys=keys)


def user_playbook_scope(request: UpgradeUserPlaybooksRequest | DowngradeUserPlaybooksRequest) -> LearningFilter:
    return LearningFilter(Kind.USER_PLAYBOOK, agent_version=request.agent_version, name=request.playbook_name)


def affected_users(scope: LearningFilter, status: Status, now: int) -> LearningFilter:
    """The scope, restricted to users who have rows of that status in it."""
    return replace(scope, of_users_with=_with_status(scope, status, alive_at=now))


def upgrade(tx: Tx, scope: LearningFilter, now: int) -> Upgrade:
    """Pending rows become current, current ones archived, and rows archived before are deleted.

    Nothing changes when nothing is pending. Rows that expired while pending do not count.
    """
    pending = _with_status(scope, Status.PENDING, alive_at=now)
    if not tx.learnings.count(pending):
        return Upgrade()
    deleted = tx.learnings.remove(_with_status(scope, Status.ARCHIVED))
    archived = _move(tx, scope, {Status.CURRENT: Status.ARCHIVED}, now)
    # Last, because the users in the scope may depend on who has pending rows.
    promoted = _move(tx, pending, {Status.PENDING: Status.CURRENT}, now)
    return Upgrade(promoted=len(promoted), archived=len(archived), deleted=deleted)


def promote(tx: Tx, scope: LearningFilter, now: int) -> Upgrade:
    """Pending rows become current beside the current ones."""
    pending = _with_status(scope, Status.PENDING, alive_at=now)
    return Upgrade(promoted=len(_move(tx, pending, {Status.PENDING: Status.CURRENT}, now)))


def downgrade(tx: Tx, scope: LearningFilter, now: int) -> Downgrade:
    """Current and archived rows swap. Nothing changes when nothing is archived."""
    if not tx.learnings.count(_with_status(scope, Status.ARCHIVED, alive_at=now)):
        return Downgrade()
    swap = {Status.CURRENT: Status.ARCHIVED, Status.ARCHIVED: Status.CURRENT}
    before = list(_move(tx, scope, swap, now).values())
    return Downgrade(restored=before.count(Status.ARCHIVED), demoted=before.count(Status.CURRENT))


def _with_status(scope: LearningFilter, status: Status, alive_at: int | None = None) -> LearningFilter:
    return replace(scope, statuses=(status,), alive_at=alive_at)


def _move(tx: Tx, where: LearningFilter, moves: Mapping[Status, Status], now: int) -> Moved:
    moved = tx.learnings.move(where, moves)
    tx.learnings.note(
        *(
            LineageEvent(
                number, where.kind, OPS[before, moves[before]], now, from_status=before, to_status=moves[before]
            )
            for number, before in moved.items()
        )
    )
    return moved


OPS = {
    (Status.PENDING, Status.CURRENT): "promoted",
    (Status.CURRENT, Status.ARCHIVED): "archived",
    (Status.ARCHIVED, Status.CURRENT): "restored",
}
