"""Search and context: what to put into the next prompt."""

from typing import Any

from fastapi import APIRouter, Request

from reflexio.models.playbook import AgentPlaybook, UserPlaybook
from reflexio.models.profile import UserProfile
from reflexio.models.search import (
    ContextRequest,
    ContextResponse,
    SearchAgentPlaybooksRequest,
    SearchAgentPlaybooksResponse,
    SearchInteractionsRequest,
    SearchInteractionsResponse,
    SearchProfilesResponse,
    SearchUserPlaybooksRequest,
    SearchUserPlaybooksResponse,
    SearchUserProfilesRequest,
    UnifiedSearchRequest,
    UnifiedSearchResponse,
)
from reflexio.retrieval import filters, service
from reflexio.retrieval.service import SearchHits, search_all_kinds, search_learnings
from reflexio.server.body import JsonRoute
from reflexio.server.parts import house, store

router = APIRouter(prefix="/api", tags=["search"], route_class=JsonRoute)


def _said(answer: SearchHits, mode: str, asked: str, count: int) -> dict[str, Any]:
    """What every search answer tells besides its rows."""
    limits = ", by words alone" if mode != asked else "" if answer.complete else ", most rows have no vector yet"
    return {
        "msg": f"Found {count}{limits}",
        "degraded": bool(limits),
        "search_mode_effective": mode,
    }


@router.post("/search_profiles", response_model_exclude_none=True)
async def search_profiles(request: Request, asked: SearchUserProfilesRequest) -> SearchProfilesResponse:
    """A user's current profiles that fit the query, best first; without a query the newest."""
    where = filters.searched_profiles(asked, house(request).clock.now())
    answer, mode = await search_learnings(store(request), house(request).query_embedder, where, asked)
    return SearchProfilesResponse.model_construct(
        user_profiles=[UserProfile.of(each) for each in answer.rows],
        explanations=answer.explanations() if asked.explain else None,
        **_said(answer, mode, asked.search_mode, len(answer.rows)),
    )


@router.post("/search_user_playbooks", response_model_exclude_none=True)
async def search_user_playbooks(request: Request, asked: SearchUserPlaybooksRequest) -> SearchUserPlaybooksResponse:
    """User playbooks that fit the query, best first, of one user or of all; without a query the newest."""
    where = filters.searched_user_playbooks(asked)
    answer, mode = await search_learnings(store(request), house(request).query_embedder, where, asked)
    return SearchUserPlaybooksResponse.model_construct(
        user_playbooks=[UserPlaybook.of(each) for each in answer.rows],
        explanations=answer.explanations() if asked.explain else None,
        **_said(answer, mode, asked.search_mode, len(answer.rows)),
    )


@router.post("/search_agent_playbooks", response_model_exclude_none=True)
async def search_agent_playbooks(request: Request, asked: SearchAgentPlaybooksRequest) -> SearchAgentPlaybooksResponse:
    """Approved agent playbooks that fit the query, best first; others when a filter names them."""
    where = filters.searched_agent_playbooks(asked)
    answer, mode = await search_learnings(store(request), house(request).query_embedder, where, asked)
    return SearchAgentPlaybooksResponse.model_construct(
        agent_playbooks=[AgentPlaybook.of(each) for each in answer.rows],
        explanations=answer.explanations() if asked.explain else None,
        **_said(answer, mode, asked.search_mode, len(answer.rows)),
    )


@router.post("/search_interactions", response_model_exclude_none=True)
async def search_interactions(request: Request, asked: SearchInteractionsRequest) -> SearchInteractionsResponse:
    """A user's turns that fit the query, best first; without a query the newest."""
    answer, mode = await service.search_interactions(store(request), house(request).query_embedder, asked)
    return SearchInteractionsResponse.model_construct(
        interactions=list(answer.rows),
        explanations=answer.explanations() if asked.explain else None,
        **_said(answer, mode, asked.search_mode, len(answer.rows)),
    )


@router.post("/search", response_model_exclude_none=True)
async def unified_search(request: Request, asked: UnifiedSearchRequest) -> UnifiedSearchResponse:
    """Profiles and user playbooks of the user, and approved agent playbooks, each best first.

    Without `user_id` there are agent playbooks only. What a found agent playbook was made of is not repeated.
    """
    parts = house(request)
    found, mode = await search_all_kinds(store(request), parts.query_embedder, asked, parts.clock.now())
    answers = (found.profiles, found.user_playbooks, found.agent_playbooks)
    count = sum(len(each.rows) for each in answers)
    return UnifiedSearchResponse.model_construct(
        profiles=[UserProfile.of(each) for each in found.profiles.rows],
        user_playbooks=[UserPlaybook.of(each) for each in found.user_playbooks.rows],
        agent_playbooks=[AgentPlaybook.of(each) for each in found.agent_playbooks.rows],
        explanations=[why for each in answers for why in each.explanations()] if asked.explain else None,
        **_said(SearchHits(complete=found.complete), mode, asked.search_mode, count),
    )


@router.post("/context", response_model_exclude_none=True)
async def get_context(request: Request, asked: ContextRequest) -> ContextResponse:
    """The text to put into a prompt, within a budget of tokens, and what is inside it."""
    parts = house(request)
    return await service.get_context(store(request), parts.query_embedder, asked, parts.clock.now())
