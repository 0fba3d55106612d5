"""From a request that lists or searches learnings to the filter that storage applies."""

import dataclasses
from collections.abc import Iterator, Sequence
from datetime import datetime

from reflexio.errors import NotFound
from reflexio.models.learning import Kind, Learning, PlaybookStatus, Status
from reflexio.models.paging import Page
from reflexio.models.playbook import GetAgentPlaybooksRequest, GetUserPlaybooksRequest
from reflexio.models.profile import GetAllProfilesRequest, GetUserProfilesRequest
from reflexio.models.search import SearchAgentPlaybooksRequest, SearchUserPlaybooksRequest, SearchUserProfilesRequest
from reflexio.ports.storage import LearningFilter, TimeRange, Tx

CURRENT = (Status.CURRENT,)
TOMBSTONES = (Status.MERGED, Status.SUPERSEDED)
APPROVED = (PlaybookStatus.APPROVED,)
LABELS = {Kind.PROFILE: "profile", Kind.USER_PLAYBOOK: "user playbook", Kind.AGENT_PLAYBOOK: "agent playbook"}
PAGE_SIZE = 1000
LARGEST_ID = 2**63 - 1


def time_range(start: datetime | None, end: datetime | None) -> TimeRange:
    return TimeRange(int(start.timestamp()) if start else None, int(end.timestamp()) if end else None)


def statuses(requested: Sequence[Status] | None) -> tuple[Status, ...]:
    """The requested ones; current ones without a filter and for an empty list."""
    return tuple(requested) if requested else CURRENT


def reviews(requested: PlaybookStatus | list[PlaybookStatus] | None) -> tuple[PlaybookStatus, ...] | None:
    """The requested ones; None, which means any, without a filter and for an empty list."""
    if not requested:
        return None
    return tuple(requested) if isinstance(requested, list) else (requested,)


def listed_profiles(request: GetUserProfilesRequest, now: int) -> LearningFilter:
    return LearningFilter(
        Kind.PROFILE,
        user_id=request.user_id,
        keys=(request.profile_id,) if request.profile_id else None,
        source=request.source or None,
        statuses=statuses(request.status_filter),
        within=time_range(request.start_time, request.end_time),
        tags=tuple(request.tags or ()),
        scope=request.scope,
        contains=request.query or None,
        time_to_live=request.profile_time_to_live,
        alive_at=now,
    )


def all_profiles(request: GetAllProfilesRequest, now: int) -> LearningFilter:
    """Expired profiles are never listed; what was merged or superseded only with `include_tombstones`."""
    wanted = CURRENT if request.status_filter is None else (request.status_filter,)
    by_expiry = request.date_field == "expiration_timestamp"
    within = time_range(request.start_time, request.end_time)
    return LearningFilter(
        Kind.PROFILE,
        user_id=request.user_id,
        keys=(request.profile_id,) if request.profile_id else None,
        statuses=(*wanted, *TOMBSTONES) if request.include_tombstones else wanted,
        within=TimeRange() if by_expiry else within,
        expires_within=within if by_expiry else TimeRange(),
        source=request.source or None,
        tags=tuple(request.tags or ()),
        scope=request.scope,
        contains=request.query or None,
        time_to_live=request.profile_time_to_live,
        alive_at=now,
    )


def listed_user_playbooks(request: GetUserPlaybooksRequest) -> LearningFilter:
    return LearningFilter(
        Kind.USER_PLAYBOOK,
        ids=(request.user_playbook_id,) if request.user_playbook_id else None,
        user_id=request.user_id,
        agent_version=request.agent_version,
        name=request.playbook_name,
        request_id=request.request_id,
        statuses=statuses(request.status_filter),
        within=time_range(request.start_time, request.end_time),
        tags=tuple(request.tags or ()),
        scope=request.scope,
        contains=request.query or None,
    )


def listed_agent_playbooks(request: GetAgentPlaybooksRequest) -> LearningFilter:
    """A filter for pending agent playbooks includes those that await a person's decision."""
    wanted = statuses(request.status_filter)
    return LearningFilter(
        Kind.AGENT_PLAYBOOK,
        ids=(request.agent_playbook_id,) if request.agent_playbook_id else None,
        agent_version=request.agent_version,
        name=request.playbook_name,
        statuses=wanted,
        or_in_review=Status.PENDING in wanted,
        reviews=reviews(request.playbook_status_filter),
        within=time_range(request.start_time, request.end_time),
        tags=tuple(request.tags or ()),
        scope=request.scope,
        contains=request.query or None,
    )


def searched_profiles(request: SearchUserProfilesRequest, now: int) -> LearningFilter:
    return LearningFilter(
        Kind.PROFILE,
        user_id=request.user_id,
        request_id=request.generated_from_request_id,
        source=request.source or None,
        within=time_range(request.start_time, request.end_time),
        tags=tuple(request.tags or ()),
        scope=request.scope,
        alive_at=now,
    )


def searched_user_playbooks(request: SearchUserPlaybooksRequest) -> LearningFilter:
    return LearningFilter(
        Kind.USER_PLAYBOOK,
        user_id=request.user_id,
        agent_version=request.agent_version,
        name=request.playbook_name,
        source=request.source or None,
        statuses=statuses(request.status_filter),
        within=time_range(request.start_time, request.end_time),
        tags=tuple(request.tags or ()),
        scope=request.scope,
    )


def searched_agent_playbooks(request: SearchAgentPlaybooksRequest) -> LearningFilter:
    """Approved ones, unless the caller names other states."""
    wanted = statuses(request.status_filter)
    return LearningFilter(
        Kind.AGENT_PLAYBOOK,
        agent_version=request.agent_version,
        name=request.playbook_name,
        source=request.source or None,
        statuses=wanted,
        or_in_review=Status.PENDING in wanted,
        reviews=reviews(request.playbook_status_filter) or _implied_reviews(wanted),
        within=time_range(request.start_time, request.end_time),
        tags=tuple(request.tags or ()),
        scope=request.scope,
    )


def _implied_reviews(wanted: Sequence[Status]) -> tuple[PlaybookStatus, ...] | None:
    """The review states that go with a `status_filter`. A filter without current rows means any review state."""
    if Status.PENDING in wanted:
        return (PlaybookStatus.APPROVED, PlaybookStatus.PENDING)
    return APPROVED if Status.CURRENT in wanted else None


def by_public_id(kind: Kind, public_id: str) -> LearningFilter:
    """Names one learning, whatever its status. Raises NotFound for an id that no row of the kind can have."""
    if kind is Kind.PROFILE:
        return LearningFilter(kind, keys=(public_id,), statuses=None)
    if not (public_id.isascii() and public_id.isdigit() and int(public_id) <= LARGEST_ID):
        raise NotFound(what=LABELS[kind], id=public_id)
    return LearningFilter(kind, ids=(int(public_id),), statuses=None)


def get_one(tx: Tx, where: LearningFilter) -> Learning:
    """The row that `where` names by its id, whatever its status. Raises NotFound."""
    learning = tx.learnings.get(dataclasses.replace(where, statuses=None))
    if learning is None:
        raise NotFound(what=LABELS[where.kind], id=(where.keys or where.ids or ("",))[0])
    return learning


def all_pages(tx: Tx, where: LearningFilter) -> Iterator[Learning]:
    """All learnings within a filter, newest first, read page by page."""
    after = None
    while True:
        page = tx.learnings.page(where, Page(PAGE_SIZE, after))
        yield from page.rows
        if page.end is None:
            return
        after = page.end
