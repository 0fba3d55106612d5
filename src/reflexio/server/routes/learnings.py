"""Profiles, user playbooks and agent playbooks: add, list, change, delete, record outcomes, show provenance."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Query, Request

from reflexio.aggregation import review
from reflexio.learning import manual_edits, provenance
from reflexio.models.access import KeyScope
from reflexio.models.interaction import BulkDeleteResponse, DeleteResponse
from reflexio.models.learning import Kind, PlaybookStatus
from reflexio.models.playbook import (
    AddAgentPlaybookRequest,
    AddUserPlaybookRequest,
    AgentPlaybook,
    DeleteAgentPlaybookRequest,
    DeleteAgentPlaybooksByIdsRequest,
    DeleteUserPlaybookRequest,
    DeleteUserPlaybooksByIdsRequest,
    GetAgentPlaybooksRequest,
    GetAgentPlaybooksResponse,
    GetUserPlaybooksRequest,
    GetUserPlaybooksResponse,
    NewAgentPlaybook,
    NewUserPlaybook,
    RecordOutcomeRequest,
    UpdateAgentPlaybookRequest,
    UpdatePlaybookStatusRequest,
    UpdateUserPlaybookRequest,
    UserPlaybook,
)
from reflexio.models.profile import (
    AddResponse,
    AddUserProfileRequest,
    DeleteProfilesByIdsRequest,
    DeleteUserProfileRequest,
    GetAllProfilesRequest,
    GetProfilesResponse,
    GetUserProfilesRequest,
    NewUserProfile,
    ProfileStatisticsResponse,
    UpdateResponse,
    UpdateUserProfileRequest,
    UserProfile,
)
from reflexio.models.review import GetLearningProvenanceRequest, LearningProvenanceResponse
from reflexio.ports.storage import LearningFilter
from reflexio.retrieval import filters
from reflexio.server.direct import Router
from reflexio.server.routes import get_reflexio, get_store
from reflexio.server.scopes import get_caller, needs, require

router = Router(prefix="/api", tag="learnings")


def _now(request: Request) -> int:
    return get_reflexio(request).clock.now()


@router.direct("POST", "/add_user_profile", KeyScope.PUBLISH)
async def add_user_profile(request: Request, body: AddUserProfileRequest) -> AddResponse:
    """Stores profiles, all or none. A `profile_id` that exists already is a 409."""
    return await _add(request, body.user_profiles)


@router.direct("POST", "/add_user_playbook", KeyScope.PUBLISH)
async def add_user_playbook(request: Request, body: AddUserPlaybookRequest) -> AddResponse:
    """Stores user playbooks, all or none."""
    return await _add(request, body.user_playbooks)


@router.direct("POST", "/add_agent_playbook", KeyScope.PUBLISH)
async def add_agent_playbook(request: Request, body: AddAgentPlaybookRequest) -> AddResponse:
    """Stores agent playbooks, all or none. They are pending; another `playbook_status` needs the scope `review`."""
    if any(playbook.playbook_status is not PlaybookStatus.PENDING for playbook in body.agent_playbooks):
        require(request, KeyScope.REVIEW)
    return await _add(request, body.agent_playbooks)


async def _add(request: Request, entries: Sequence[NewUserProfile | NewUserPlaybook | NewAgentPlaybook]) -> AddResponse:
    new, scopes = [entry.learning(_now(request)) for entry in entries], [entry.scope for entry in entries]
    reflexio = get_reflexio(request)
    return await manual_edits.add(get_store(request), reflexio.scopes, reflexio.immediate_embedder, new, scopes)


@router.direct("POST", "/get_profiles", KeyScope.READ)
async def get_profiles(request: Request, body: GetUserProfilesRequest) -> GetProfilesResponse:
    """A user's profiles, newest first: current ones unless `status_filter` says otherwise, never expired ones."""
    where = filters.listed_profiles(body, _now(request))
    return await _profiles(request, where, body.top_k, body.cursor)


@router.get("/get_all_profiles", response_model_exclude_none=True, openapi_extra=needs(KeyScope.READ))
async def get_all_profiles(
    request: Request, selection: Annotated[GetAllProfilesRequest, Query()]
) -> GetProfilesResponse:
    """Profiles of one user or of all users of the organisation, newest first, never expired ones."""
    where = filters.all_profiles(selection, _now(request))
    return await _profiles(request, where, selection.limit, selection.cursor)


async def _profiles(
    request: Request, where: LearningFilter, limit: int | None, cursor: str | None
) -> GetProfilesResponse:
    page = await manual_edits.list_learnings(get_store(request), where, limit, cursor)
    return GetProfilesResponse.model_construct(
        user_profiles=[UserProfile.of(row) for row in page.rows],
        msg=f"Found {len(page.rows)} profile(s)",
        next_cursor=page.cursor,
    )


@router.direct("POST", "/get_user_playbooks", KeyScope.READ)
async def get_user_playbooks(request: Request, body: GetUserPlaybooksRequest) -> GetUserPlaybooksResponse:
    """User playbooks, newest first: current ones unless `status_filter` says otherwise."""
    page = await manual_edits.list_learnings(
        get_store(request), filters.listed_user_playbooks(body), body.limit, body.cursor
    )
    return GetUserPlaybooksResponse.model_construct(
        user_playbooks=[UserPlaybook.of(row) for row in page.rows],
        msg=f"Found {len(page.rows)} user playbook(s)",
        next_cursor=page.cursor,
    )


@router.direct("POST", "/get_agent_playbooks", KeyScope.READ)
async def get_agent_playbooks(request: Request, body: GetAgentPlaybooksRequest) -> GetAgentPlaybooksResponse:
    """Agent playbooks with any decision, newest first. A `status_filter` of pending includes those not decided yet."""
    page = await manual_edits.list_learnings(
        get_store(request), filters.listed_agent_playbooks(body), body.limit, body.cursor
    )
    return GetAgentPlaybooksResponse.model_construct(
        agent_playbooks=[AgentPlaybook.of(row) for row in page.rows],
        msg=f"Found {len(page.rows)} agent playbook(s)",
        next_cursor=page.cursor,
    )


@router.get("/get_profile_statistics", response_model_exclude_none=True, openapi_extra=needs(KeyScope.READ))
async def get_profile_statistics(request: Request) -> ProfileStatisticsResponse:
    """The number of profiles in the organisation, by status."""
    return await manual_edits.profile_statistics(get_store(request), get_reflexio(request).clock)


@router.direct("PUT", "/update_user_profile", KeyScope.PUBLISH)
async def update_user_profile(request: Request, body: UpdateUserProfileRequest) -> UpdateResponse:
    """Changes a profile. Absent fields stay as they are. A 404 when the user has no such profile."""
    reflexio = get_reflexio(request)
    edited = (get_store(request), reflexio.clock, reflexio.immediate_embedder)
    return await manual_edits.update_profile(*edited, body, actor=get_caller(request).owner)


@router.direct("PUT", "/update_user_playbook", KeyScope.PUBLISH)
async def update_user_playbook(request: Request, body: UpdateUserPlaybookRequest) -> UpdateResponse:
    """Changes a user playbook. Absent fields stay as they are. A 404 for an unknown id."""
    where = LearningFilter(Kind.USER_PLAYBOOK, ids=(body.user_playbook_id,))
    changes = {
        "name": body.playbook_name,
        "content": body.content,
        "trigger": body.trigger,
        "rationale": body.rationale,
        "scope": body.scope,
    }
    reflexio = get_reflexio(request)
    edited = (get_store(request), reflexio.clock, reflexio.immediate_embedder)
    return await manual_edits.update(*edited, where, changes, actor=get_caller(request).owner)


@router.direct("PUT", "/update_agent_playbook", KeyScope.REVIEW)
async def update_agent_playbook(request: Request, body: UpdateAgentPlaybookRequest) -> UpdateResponse:
    """Changes the wording of an agent playbook, the decision about it, or both. Absent fields stay as they are."""
    reflexio, owner = get_reflexio(request), get_caller(request).owner
    embed = reflexio.immediate_embedder.embed
    return await review.edit(get_store(request), reflexio.clock, body, owner=owner, embed=embed)


@router.direct("PUT", "/update_agent_playbook_status", KeyScope.REVIEW)
async def update_agent_playbook_status(request: Request, body: UpdatePlaybookStatusRequest) -> UpdateResponse:
    """Approves, rejects or reopens an agent playbook. Reviewer, time and reason are recorded."""
    return await review.decide(get_store(request), get_reflexio(request).clock, body, owner=get_caller(request).owner)


@router.direct("DELETE", "/delete_profile", KeyScope.REVIEW)
async def delete_profile(request: Request, body: DeleteUserProfileRequest) -> DeleteResponse:
    """Deletes one profile by id, or all profiles of the user that contain `search_query`. A 404 for an unknown id."""
    return await manual_edits.delete_profiles(get_store(request), body)


@router.direct("DELETE", "/delete_user_playbook", KeyScope.REVIEW)
async def delete_user_playbook(request: Request, body: DeleteUserPlaybookRequest) -> DeleteResponse:
    """Deletes one user playbook. A 404 for an unknown id."""
    where = LearningFilter(Kind.USER_PLAYBOOK, ids=(body.user_playbook_id,))
    return await manual_edits.delete_one(get_store(request), where)


@router.direct("DELETE", "/delete_agent_playbook", KeyScope.REVIEW)
async def delete_agent_playbook(request: Request, body: DeleteAgentPlaybookRequest) -> DeleteResponse:
    """Deletes one agent playbook. A 404 for an unknown id."""
    where = LearningFilter(Kind.AGENT_PLAYBOOK, ids=(body.agent_playbook_id,))
    return await manual_edits.delete_one(get_store(request), where)


@router.direct("DELETE", "/delete_profiles_by_ids", KeyScope.REVIEW)
async def delete_profiles_by_ids(request: Request, body: DeleteProfilesByIdsRequest) -> BulkDeleteResponse:
    """Deletes several profiles. Unknown ids are ignored."""
    where = LearningFilter(Kind.PROFILE, keys=tuple(body.profile_ids))
    return await manual_edits.delete_many(get_store(request), where)


@router.direct("DELETE", "/delete_user_playbooks_by_ids", KeyScope.REVIEW)
async def delete_user_playbooks_by_ids(request: Request, body: DeleteUserPlaybooksByIdsRequest) -> BulkDeleteResponse:
    """Deletes several user playbooks. Unknown ids are ignored."""
    where = LearningFilter(Kind.USER_PLAYBOOK, ids=tuple(body.user_playbook_ids))
    return await manual_edits.delete_many(get_store(request), where)


@router.direct("DELETE", "/delete_agent_playbooks_by_ids", KeyScope.REVIEW)
async def delete_agent_playbooks_by_ids(request: Request, body: DeleteAgentPlaybooksByIdsRequest) -> BulkDeleteResponse:
    """Deletes several agent playbooks. Unknown ids are ignored."""
    where = LearningFilter(Kind.AGENT_PLAYBOOK, ids=tuple(body.agent_playbook_ids))
    return await manual_edits.delete_many(get_store(request), where)


@router.delete("/delete_all_profiles", openapi_extra=needs(KeyScope.ADMIN))
async def delete_all_profiles(request: Request) -> BulkDeleteResponse:
    """Deletes all profiles of all users of the organisation; it cannot be undone."""
    return await manual_edits.delete_many(get_store(request), LearningFilter(Kind.PROFILE))


@router.delete("/delete_all_user_playbooks", openapi_extra=needs(KeyScope.ADMIN))
async def delete_all_user_playbooks(request: Request) -> BulkDeleteResponse:
    """Deletes all user playbooks of all users of the organisation; it cannot be undone."""
    return await manual_edits.delete_many(get_store(request), LearningFilter(Kind.USER_PLAYBOOK))


@router.delete("/delete_all_agent_playbooks", openapi_extra=needs(KeyScope.ADMIN))
async def delete_all_agent_playbooks(request: Request) -> BulkDeleteResponse:
    """Deletes all agent playbooks of the organisation; it cannot be undone."""
    return await manual_edits.delete_many(get_store(request), LearningFilter(Kind.AGENT_PLAYBOOK))


@router.delete("/delete_all_playbooks", openapi_extra=needs(KeyScope.ADMIN))
async def delete_all_playbooks(request: Request) -> BulkDeleteResponse:
    """Deletes all user playbooks and agent playbooks of the organisation; it cannot be undone."""
    both = LearningFilter(Kind.USER_PLAYBOOK), LearningFilter(Kind.AGENT_PLAYBOOK)
    return await manual_edits.delete_many(get_store(request), *both)


@router.direct("POST", "/get_learning_provenance", KeyScope.READ)
async def get_learning_provenance(request: Request, body: GetLearningProvenanceRequest) -> LearningProvenanceResponse:
    """Why a learning exists: the turns it cites, the learner, what it replaced, and its history.

    A 404 for an unknown learning. `provenance_status` is `exact` when every turn that it cites is still stored.
    """
    return await provenance.provenance(get_store(request), body)


@router.direct("POST", "/record_outcome", KeyScope.PUBLISH)
async def record_outcome(request: Request, body: RecordOutcomeRequest) -> UpdateResponse:
    """Counts that playbooks helped, hurt, or were learned again. Unknown ids are ignored."""
    return await manual_edits.record_outcome(get_store(request), body)
