"""Search, and the context to put into the next prompt."""

from typing import Any

from fastapi import Request

from reflexio.models.access import KeyScope
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
from reflexio.server.direct import Router
from reflexio.server.routes import get_reflexio, get_store

router = Router(prefix="/api", tag="search")
LearningSearch = SearchUserProfilesRequest | SearchUserPlaybooksRequest | SearchAgentPlaybooksRequest
SearchRequest = LearningSearch | SearchInteractionsRequest | UnifiedSearchRequest


def _report(mode: str, body: SearchRequest, *answers: SearchHits, next_cursor: str | None = None) -> dict[str, Any]:
    """The fields of every search response besides its rows."""
    limits = ""
    if mode != body.search_mode:
        limits = ", by words alone"
    elif not all(answer.complete for answer in answers):
        limits = ", most rows have no vector yet"
    return {
        "msg": f"Found {sum(len(answer.rows) for answer in answers)}{limits}",
        "degraded": bool(limits),
        "search_mode_effective": mode,
        "next_cursor": next_cursor or (answers[0].next_cursor if len(answers) == 1 else None),
        "explanations": [reason for answer in answers for reason in answer.explanations()] if body.explain else None,
    }


@router.direct("POST", "/search_profiles", KeyScope.READ)
async def search_profiles(request: Request, body: SearchUserProfilesRequest) -> SearchProfilesResponse:
    """A user's current profiles that match the query, best first. Without a query: the newest."""
    where = filters.searched_profiles(body, get_reflexio(request).clock.now())
    answer, mode = await search_learnings(get_store(request), get_reflexio(request).query_embedder, where, body)
    return SearchProfilesResponse.model_construct(
        user_profiles=[UserProfile.of(row) for row in answer.rows], **_report(mode, body, answer)
    )


@router.direct("POST", "/search_user_playbooks", KeyScope.READ)
async def search_user_playbooks(request: Request, body: SearchUserPlaybooksRequest) -> SearchUserPlaybooksResponse:
    """User playbooks of one user or of all that match the query, best first. Without a query: the newest."""
    where = filters.searched_user_playbooks(body)
    answer, mode = await search_learnings(get_store(request), get_reflexio(request).query_embedder, where, body)
    return SearchUserPlaybooksResponse.model_construct(
        user_playbooks=[UserPlaybook.of(row) for row in answer.rows], **_report(mode, body, answer)
    )


@router.direct("POST", "/search_agent_playbooks", KeyScope.READ)
async def search_agent_playbooks(request: Request, body: SearchAgentPlaybooksRequest) -> SearchAgentPlaybooksResponse:
    """Approved agent playbooks that match the query, best first; others when a filter names them."""
    where = filters.searched_agent_playbooks(body)
    answer, mode = await search_learnings(get_store(request), get_reflexio(request).query_embedder, where, body)
    return SearchAgentPlaybooksResponse.model_construct(
        agent_playbooks=[AgentPlaybook.of(row) for row in answer.rows], **_report(mode, body, answer)
    )


@router.direct("POST", "/search_interactions", KeyScope.READ)
async def search_interactions(request: Request, body: SearchInteractionsRequest) -> SearchInteractionsResponse:
    """A user's turns that match the query, best first. Without a query: the newest."""
    answer, mode = await service.search_interactions(get_store(request), get_reflexio(request).query_embedder, body)
    return SearchInteractionsResponse.model_construct(interactions=list(answer.rows), **_report(mode, body, answer))


@router.direct("POST", "/search", KeyScope.READ)
async def unified_search(request: Request, body: UnifiedSearchRequest) -> UnifiedSearchResponse:
    """Profiles and user playbooks of the user, and approved agent playbooks, each best first.

    Without `user_id` the response has agent playbooks only. User playbooks that a found agent playbook summarises are
    left out.
    """
    parts = get_reflexio(request)
    hits, mode = await search_all_kinds(get_store(request), parts.query_embedder, body, parts.clock.now())
    return UnifiedSearchResponse.model_construct(
        profiles=[UserProfile.of(row) for row in hits.profiles.rows],
        user_playbooks=[UserPlaybook.of(row) for row in hits.user_playbooks.rows],
        agent_playbooks=[AgentPlaybook.of(row) for row in hits.agent_playbooks.rows],
        **_report(mode, body, hits.profiles, hits.user_playbooks, hits.agent_playbooks, next_cursor=hits.next_cursor),
    )


@router.direct("POST", "/context", KeyScope.READ)
async def get_context(request: Request, body: ContextRequest) -> ContextResponse:
    """The text to put into a prompt, within a token budget, and the learnings in it."""
    parts = get_reflexio(request)
    return await service.get_context(get_store(request), parts.query_embedder, body, parts.clock.now())
