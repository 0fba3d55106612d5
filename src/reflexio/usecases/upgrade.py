"""Upgrade: a new generation of learnings takes the place of the old one, or gives it back, within what was named.

A scope is a filter, and every row that is read, moved or deleted passes it. With ids it is only the rows named.
"""

from collections.abc import Mapping
from dataclasses import replace

from reflexio.models.learning import Kind
from reflexio.models.status import Status
from reflexio.models.upgrade import (
    Downgrade,
    DowngradeProfilesRequest,
    DowngradeUserPlaybooksRequest,
    Upgrade,
    UpgradeProfilesRequest,
    UpgradeUserPlaybooksRequest,
)
from reflexio.ports.storage import LearningFilter, LineageEvent, Tx

Moved = Mapping[int, Status]


def profiles(asked: UpgradeProfilesRequest | DowngradeProfilesRequest) -> LearningFilter:
    keys = None if asked.profile_ids is None else tuple(asked.profile_ids)
    return LearningFilter(Kind.PROFILE, user_id=asked.user_id, keys=keys)


def user_playbooks(asked: UpgradeUserPlaybooksRequest | DowngradeUserPlaybooksRequest) -> LearningFilter:
    return LearningFilter(Kind.USER_PLAYBOOK, agent_version=asked.agent_version, name=asked.playbook_name)


def affected(scope: LearningFilter, status: Status, now: int) -> LearningFilter:
    """The scope, without users who have nothing of that status in it."""
    return replace(scope, of_users_with=_of(scope, status, alive_at=now))


def upgrade(tx: Tx, scope: LearningFilter, now: int) -> Upgrade:
    """Pending rows become current, current ones archived, and what was archived before is deleted.

    Nothing changes when nothing is pending. What expired while it was pending counts as not there.
    """
    pending = _of(scope, Status.PENDING, alive_at=now)
    if not tx.learnings.count(pending):
        return Upgrade()
    deleted = tx.learnings.remove(_of(scope, Status.ARCHIVED))
    archived = _move(tx, scope, {Status.CURRENT: Status.ARCHIVED}, now)
    # Last, because whose rows the scope reaches may depend on who has pending ones.
    promoted = _move(tx, pending, {Status.PENDING: Status.CURRENT}, now)
    return Upgrade(promoted=len(promoted), archived=len(archived), deleted=deleted)


def promote(tx: Tx, scope: LearningFilter, now: int) -> Upgrade:
    """Pending rows become current beside those that are."""
    pending = _of(scope, Status.PENDING, alive_at=now)
    return Upgrade(promoted=len(_move(tx, pending, {Status.PENDING: Status.CURRENT}, now)))


def downgrade(tx: Tx, scope: LearningFilter, now: int) -> Downgrade:
    """Current and archived rows change places. Nothing changes when nothing is archived."""
    if not tx.learnings.count(_of(scope, Status.ARCHIVED, alive_at=now)):
        return Downgrade()
    swap = {Status.CURRENT: Status.ARCHIVED, Status.ARCHIVED: Status.CURRENT}
    before = list(_move(tx, scope, swap, now).values())
    return Downgrade(restored=before.count(Status.ARCHIVED), demoted=before.count(Status.CURRENT))


def _of(scope: LearningFilter, status: Status, alive_at: int | None = None) -> LearningFilter:
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
