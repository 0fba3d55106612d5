"""Profiles, user playbooks and agent playbooks: add, list, change, delete."""

from typing import Annotated

from fastapi import APIRouter, Query, Request

from reflexio.aggregation import review
from reflexio.learning import learnings, provenance
from reflexio.models.interaction import BulkDeleteResponse, DeleteResponse
from reflexio.models.learning import Kind
from reflexio.models.paging import Cursor
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
    GetProfilesResponse,
    GetUserProfilesRequest,
    ProfileStatisticsResponse,
    UpdateResponse,
    UpdateUserProfileRequest,
    UserProfile,
)
from reflexio.models.provenance import GetLearningProvenanceRequest, LearningProvenanceResponse
from reflexio.models.shape import Moment, Source
from reflexio.models.status import WireStatus
from reflexio.ports.storage import LearningFilter
from reflexio.retrieval import filters
from reflexio.server.body import JsonRoute
from reflexio.server.parts import house, store

router = APIRouter(prefix="/api", tags=["learnings"], route_class=JsonRoute)


def now(request: Request) -> int:
    return house(request).clock.now()


@router.post("/add_user_profile", response_model_exclude_none=True)
async def add_user_profile(request: Request, wanted: AddUserProfileRequest) -> AddResponse:
    """Stores facts about users, all or none. A taken `profile_id` is a 409."""
    return await learnings.add(store(request), [each.learning(now(request)) for each in wanted.user_profiles])


@router.post("/add_user_playbook", response_model_exclude_none=True)
async def add_user_playbook(request: Request, wanted: AddUserPlaybookRequest) -> AddResponse:
    """Stores what single users taught, all or none."""
    return await learnings.add(store(request), [each.learning(now(request)) for each in wanted.user_playbooks])


@router.post("/add_agent_playbook", response_model_exclude_none=True)
async def add_agent_playbook(request: Request, wanted: AddAgentPlaybookRequest) -> AddResponse:
    """Stores what is to hold for everybody, all or none. Pending unless `playbook_status` says otherwise."""
    return await learnings.add(store(request), [each.learning(now(request)) for each in wanted.agent_playbooks])


@router.post("/get_profiles", response_model_exclude_none=True)
async def get_profiles(request: Request, asked: GetUserProfilesRequest) -> GetProfilesResponse:
    """A user's profiles, newest first; current ones unless `status_filter` says otherwise. Expired ones are gone."""
    where = filters.listed_profiles(asked, now(request))
    return await _profiles(request, where, asked.top_k, asked.cursor)


@router.get("/get_all_profiles", response_model_exclude_none=True)
async def get_all_profiles(
    request: Request,
    limit: Annotated[int, Query(gt=0)] = 100,
    status_filter: WireStatus | None = None,
    start_time: Moment | None = None,
    end_time: Moment | None = None,
    source: Source | None = None,
    cursor: Cursor | None = None,
) -> GetProfilesResponse:
    """Everybody's profiles in the organisation, newest first."""
    where = filters.all_profiles(status_filter, start_time, end_time, source, now(request))
    return await _profiles(request, where, limit, cursor)


async def _profiles(
    request: Request, where: LearningFilter, limit: int | None, cursor: str | None
) -> GetProfilesResponse:
    found = await learnings.list_learnings(store(request), where, limit, cursor)
    return GetProfilesResponse.model_construct(
        user_profiles=[UserProfile.of(each) for each in found.rows],
        msg=f"Found {len(found.rows)} profile(s)",
        next_cursor=found.cursor,
    )


@router.post("/get_user_playbooks", response_model_exclude_none=True)
async def get_user_playbooks(request: Request, asked: GetUserPlaybooksRequest) -> GetUserPlaybooksResponse:
    """User playbooks, newest first; current ones unless `status_filter` says otherwise."""
    found = await learnings.list_learnings(
        store(request), filters.listed_user_playbooks(asked), asked.limit, asked.cursor
    )
    return GetUserPlaybooksResponse.model_construct(
        user_playbooks=[UserPlaybook.of(each) for each in found.rows],
        msg=f"Found {len(found.rows)} user playbook(s)",
        next_cursor=found.cursor,
    )


@router.post("/get_agent_playbooks", response_model_exclude_none=True)
async def get_agent_playbooks(request: Request, asked: GetAgentPlaybooksRequest) -> GetAgentPlaybooksResponse:
    """Agent playbooks of any decision, newest first. `status_filter` of pending also means: waiting for a decision."""
    found = await learnings.list_learnings(
        store(request), filters.listed_agent_playbooks(asked), asked.limit, asked.cursor
    )
    return GetAgentPlaybooksResponse.model_construct(
        agent_playbooks=[AgentPlaybook.of(each) for each in found.rows],
        msg=f"Found {len(found.rows)} agent playbook(s)",
        next_cursor=found.cursor,
    )


@router.get("/get_profile_statistics", response_model_exclude_none=True)
async def get_profile_statistics(request: Request) -> ProfileStatisticsResponse:
    """How many profiles the organisation has, by status."""
    return await learnings.profile_statistics(store(request), house(request).clock)


@router.put("/update_user_profile", response_model_exclude_none=True)
async def update_user_profile(request: Request, asked: UpdateUserProfileRequest) -> UpdateResponse:
    """Changes a profile. What is absent stays. A 404 when the user has no such profile."""
    return await learnings.update_profile(store(request), house(request).clock, asked)


@router.put("/update_user_playbook", response_model_exclude_none=True)
async def update_user_playbook(request: Request, asked: UpdateUserPlaybookRequest) -> UpdateResponse:
    """Changes a user playbook. What is absent stays. A 404 when there is none."""
    where = LearningFilter(Kind.USER_PLAYBOOK, ids=(asked.user_playbook_id,))
    changes = {
        "name": asked.playbook_name,
        "content": asked.content,
        "trigger": asked.trigger,
        "rationale": asked.rationale,
    }
    return await learnings.update(store(request), house(request).clock, where, changes)


@router.put("/update_agent_playbook", response_model_exclude_none=True)
async def update_agent_playbook(request: Request, asked: UpdateAgentPlaybookRequest) -> UpdateResponse:
    """Changes the wording of an agent playbook, the decision about it, or both. What is absent stays."""
    return await review.edit(store(request), house(request).clock, asked)


@router.put("/update_agent_playbook_status", response_model_exclude_none=True)
async def update_agent_playbook_status(request: Request, asked: UpdatePlaybookStatusRequest) -> UpdateResponse:
    """Approves, rejects or reopens an agent playbook. Who, when and why are kept."""
    return await review.decide(store(request), house(request).clock, asked)


@router.delete("/delete_profile")
async def delete_profile(request: Request, which: DeleteUserProfileRequest) -> DeleteResponse:
    """Deletes one profile by its id, or those of the user that contain `search_query`. A 404 for an unknown id."""
    return await learnings.delete_profiles(store(request), which)


@router.delete("/delete_user_playbook")
async def delete_user_playbook(request: Request, which: DeleteUserPlaybookRequest) -> DeleteResponse:
    """Deletes one user playbook. A 404 when there is none."""
    where = LearningFilter(Kind.USER_PLAYBOOK, ids=(which.user_playbook_id,))
    return await learnings.delete_one(store(request), where)


@router.delete("/delete_agent_playbook")
async def delete_agent_playbook(request: Request, which: DeleteAgentPlaybookRequest) -> DeleteResponse:
    """Deletes one agent playbook. A 404 when there is none."""
    where = LearningFilter(Kind.AGENT_PLAYBOOK, ids=(which.agent_playbook_id,))
    return await learnings.delete_one(store(request), where)


@router.delete("/delete_profiles_by_ids")
async def delete_profiles_by_ids(request: Request, which: DeleteProfilesByIdsRequest) -> BulkDeleteResponse:
    """Deletes several profiles; unknown ids are passed over."""
    where = LearningFilter(Kind.PROFILE, keys=tuple(which.profile_ids))
    return await learnings.delete_many(store(request), where)


@router.delete("/delete_user_playbooks_by_ids")
async def delete_user_playbooks_by_ids(request: Request, which: DeleteUserPlaybooksByIdsRequest) -> BulkDeleteResponse:
    """Deletes several user playbooks; unknown ids are passed over."""
    where = LearningFilter(Kind.USER_PLAYBOOK, ids=tuple(which.user_playbook_ids))
    return await learnings.delete_many(store(request), where)


@router.delete("/delete_agent_playbooks_by_ids")
async def delete_agent_playbooks_by_ids(
    request: Request, which: DeleteAgentPlaybooksByIdsRequest
) -> BulkDeleteResponse:
    """Deletes several agent playbooks; unknown ids are passed over."""
    where = LearningFilter(Kind.AGENT_PLAYBOOK, ids=tuple(which.agent_playbook_ids))
    return await learnings.delete_many(store(request), where)


@router.delete("/delete_all_profiles")
async def delete_all_profiles(request: Request) -> BulkDeleteResponse:
    """Deletes all profiles of the organisation."""
    return await learnings.delete_many(store(request), LearningFilter(Kind.PROFILE))


@router.delete("/delete_all_user_playbooks")
async def delete_all_user_playbooks(request: Request) -> BulkDeleteResponse:
    """Deletes all user playbooks of the organisation."""
    return await learnings.delete_many(store(request), LearningFilter(Kind.USER_PLAYBOOK))


@router.delete("/delete_all_agent_playbooks")
async def delete_all_agent_playbooks(request: Request) -> BulkDeleteResponse:
    """Deletes all agent playbooks of the organisation."""
    return await learnings.delete_many(store(request), LearningFilter(Kind.AGENT_PLAYBOOK))


@router.delete("/delete_all_playbooks")
async def delete_all_playbooks(request: Request) -> BulkDeleteResponse:
    """Deletes all user playbooks and agent playbooks of the organisation."""
    both = LearningFilter(Kind.USER_PLAYBOOK), LearningFilter(Kind.AGENT_PLAYBOOK)
    return await learnings.delete_many(store(request), *both)


@router.post("/get_learning_provenance", response_model_exclude_none=True)
async def get_learning_provenance(request: Request, asked: GetLearningProvenanceRequest) -> LearningProvenanceResponse:
    """Why a learning is there: the turns it came from, who learned it, what it replaced, what happened to it.

    A 404 when there is none. `provenance_status` is `exact` when every turn that it cites is still stored.
    """
    return await provenance.provenance(store(request), asked)
