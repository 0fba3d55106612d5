"""Learnings by hand: add, list, change and delete profiles and playbooks."""

import dataclasses
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from reflexio.errors import InvalidRequest, NotFound
from reflexio.models.interaction import BulkDeleteResponse, DeleteResponse
from reflexio.models.learning import Kind, Learning
from reflexio.models.paging import MOST, Listing, page
from reflexio.models.playbook import GetAgentPlaybooksRequest, GetUserPlaybooksRequest
from reflexio.models.profile import (
    AddResponse,
    DeleteUserProfileRequest,
    GetUserProfilesRequest,
    ProfileStatisticsResponse,
    UpdateResponse,
    UpdateUserProfileRequest,
)
from reflexio.models.status import PlaybookStatus, Status
from reflexio.ports.clock import Clock
from reflexio.ports.storage import LearningFilter, LineageEvent, Store, Tx
from reflexio.usecases.browse import time_range

CURRENT = (Status.CURRENT,)
EXPIRING_SOON = 7 * 86_400
WORDS = {Kind.PROFILE: "profile", Kind.USER_PLAYBOOK: "user playbook", Kind.AGENT_PLAYBOOK: "agent playbook"}


async def add(store: Store, new: Sequence[Learning]) -> AddResponse:
    ids = await store.write(lambda tx: tx.learnings.add(new))
    public = [dataclasses.replace(each, id=number).public_id for each, number in zip(new, ids, strict=True)]
    return AddResponse(added_count=len(ids), message=f"Added {len(ids)} {WORDS[new[0].kind]}(s)", ids=public)


async def listed(store: Store, where: LearningFilter, limit: int | None, cursor: str | None) -> Listing[Learning]:
    here = page(limit or MOST, cursor)
    return await store.read(lambda tx: tx.learnings.page(where, here))


def statuses(asked: Sequence[Status] | None) -> tuple[Status, ...]:
    """Those asked for; without any, and for an empty list, the current ones."""
    return tuple(asked) if asked else CURRENT


def profiles(asked: GetUserProfilesRequest, now: int) -> LearningFilter:
    return LearningFilter(
        Kind.PROFILE,
        user_id=asked.user_id,
        keys=(asked.profile_id,) if asked.profile_id else None,
        source=asked.source or None,
        statuses=statuses(asked.status_filter),
        within=time_range(asked.start_time, asked.end_time),
        tags=tuple(asked.tags or ()),
        contains=asked.query or None,
        time_to_live=asked.profile_time_to_live,
        alive_at=now,
    )


def all_profiles(
    status: Status | None, start: datetime | None, end: datetime | None, source: str | None, now: int
) -> LearningFilter:
    return LearningFilter(
        Kind.PROFILE,
        statuses=CURRENT if status is None else (status,),
        within=time_range(start, end),
        source=source or None,
        alive_at=now,
    )


def user_playbooks(asked: GetUserPlaybooksRequest) -> LearningFilter:
    return LearningFilter(
        Kind.USER_PLAYBOOK,
        ids=(asked.user_playbook_id,) if asked.user_playbook_id else None,
        user_id=asked.user_id,
        agent_version=asked.agent_version,
        name=asked.playbook_name,
        request_id=asked.request_id,
        statuses=statuses(asked.status_filter),
        within=time_range(asked.start_time, asked.end_time),
        tags=tuple(asked.tags or ()),
        contains=asked.query or None,
    )


def reviews(asked: PlaybookStatus | list[PlaybookStatus] | None) -> tuple[PlaybookStatus, ...] | None:
    """Those asked for; None, which is any, without a filter and for an empty list."""
    if not asked:
        return None
    return tuple(asked) if isinstance(asked, list) else (asked,)


def agent_playbooks(asked: GetAgentPlaybooksRequest) -> LearningFilter:
    """To ask for pending agent playbooks also means those that wait for a person's decision."""
    wanted = statuses(asked.status_filter)
    return LearningFilter(
        Kind.AGENT_PLAYBOOK,
        ids=(asked.agent_playbook_id,) if asked.agent_playbook_id else None,
        agent_version=asked.agent_version,
        name=asked.playbook_name,
        statuses=wanted,
        or_in_review=Status.PENDING in wanted,
        reviews=reviews(asked.playbook_status_filter),
        within=time_range(asked.start_time, asked.end_time),
        tags=tuple(asked.tags or ()),
        contains=asked.query or None,
    )


def one(tx: Tx, where: LearningFilter) -> Learning:
    """The row that `where` names by its id, whatever its status."""
    found = tx.learnings.get(dataclasses.replace(where, statuses=None))
    if found is None:
        raise NotFound(what=WORDS[where.kind], id=(where.keys or where.ids or ("",))[0])
    return found


async def update(store: Store, clock: Clock, where: LearningFilter, changes: dict[str, Any]) -> UpdateResponse:
    """Changes the fields that are given; None leaves a field as it is."""
    given = {name: value for name, value in changes.items() if value is not None}
    now = clock.now()

    def change(tx: Tx) -> UpdateResponse:
        before = one(tx, where)
        after = dataclasses.replace(before, **given)
        if after == before:
            return UpdateResponse(msg="Nothing to change")
        tx.learnings.replace(dataclasses.replace(after, modified_at=now))
        tx.learnings.note(LineageEvent(before.id, before.kind, "edited", now))
        return UpdateResponse(msg="Updated")

    return await store.write(change)


async def update_profile(store: Store, clock: Clock, asked: UpdateUserProfileRequest) -> UpdateResponse:
    now = clock.now()

    def change(tx: Tx) -> UpdateResponse:
        # What has expired is gone: to change it would not bring it back.
        living = LearningFilter(Kind.PROFILE, keys=(asked.profile_id,), user_id=asked.user_id, alive_at=now)
        before = one(tx, living)
        details = before.details
        if asked.custom_features is not None:
            details = {**details, "custom_features": asked.custom_features}
        after = dataclasses.replace(
            before,
            content=asked.content or before.content,
            details=details,
            modified_at=now,
            # Profiles are listed by when they were last true.
            created_at=now,
        )
        tx.learnings.replace(after)
        tx.learnings.note(LineageEvent(before.id, before.kind, "edited", now))
        return UpdateResponse(msg="Updated")

    return await store.write(change)


async def delete_one(store: Store, where: LearningFilter) -> DeleteResponse:
    def forget(tx: Tx) -> DeleteResponse:
        one(tx, where)
        tx.learnings.remove(dataclasses.replace(where, statuses=None))
        return DeleteResponse(message="Deleted")

    return await store.write(forget)


async def delete_profiles(store: Store, asked: DeleteUserProfileRequest) -> DeleteResponse:
    """One profile by id, or those of the user that contain a text. Never more than one of the two names."""
    if asked.profile_id:
        return await delete_one(store, LearningFilter(Kind.PROFILE, keys=(asked.profile_id,), user_id=asked.user_id))
    if not asked.search_query.strip():
        raise InvalidRequest("Give profile_id or search_query; delete_all_profiles deletes all.")
    where = LearningFilter(Kind.PROFILE, user_id=asked.user_id, contains=asked.search_query.strip())
    count = await store.write(lambda tx: tx.learnings.remove(where))
    return DeleteResponse(message=f"Deleted {count} profile(s)")


async def delete_many(store: Store, *which: LearningFilter) -> BulkDeleteResponse:
    def forget(tx: Tx) -> int:
        return sum(tx.learnings.remove(dataclasses.replace(where, statuses=None)) for where in which)

    count = await store.write(forget)
    return BulkDeleteResponse(deleted_count=count, message=f"Deleted {count} row(s)")


async def profile_statistics(store: Store, clock: Clock) -> ProfileStatisticsResponse:
    now = clock.now()

    def look(tx: Tx) -> ProfileStatisticsResponse:
        def counted(status: Status, alive_at: int) -> int:
            return tx.learnings.count(LearningFilter(Kind.PROFILE, statuses=(status,), alive_at=alive_at))

        current = counted(Status.CURRENT, now)
        return ProfileStatisticsResponse(
            current_count=current,
            pending_count=counted(Status.PENDING, now),
            archived_count=counted(Status.ARCHIVED, now),
            expiring_soon_count=current - counted(Status.CURRENT, now + EXPIRING_SOON),
        )

    return await store.read(look)
