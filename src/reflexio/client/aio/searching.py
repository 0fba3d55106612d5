"""Search and context: what to put into the next prompt."""

import warnings
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from reflexio.client.aio.calls import Calls, zoned
from reflexio.client.answers import asked, build
from reflexio.client.twins import awaited
from reflexio.models.search import (
    ContextRequest,
    ContextResponse,
    SearchAgentPlaybooksRequest,
    SearchAgentPlaybooksResponse,
    SearchInteractionsRequest,
    SearchInteractionsResponse,
    SearchMode,
    SearchProfilesResponse,
    SearchUserPlaybooksRequest,
    SearchUserPlaybooksResponse,
    SearchUserProfilesRequest,
    UnifiedSearchRequest,
    UnifiedSearchResponse,
)
from reflexio.models.status import PlaybookStatus, Status

Mode = SearchMode | str


class SearchCalls(Calls):
    """Search and context."""

    async def search(
        self,
        query: str | UnifiedSearchRequest | dict[str, Any] | None = None,
        *,
        user_id: str | None = None,
        agent_version: str | None = None,
        playbook_name: str | None = None,
        top_k: int | None = None,
        threshold: float | None = None,
        source: str | None = None,
        tags: Sequence[str] | None = None,
        entity_types: Sequence[str] | None = None,
        agent_playbook_status_filter: Sequence[PlaybookStatus | str] | None = None,
        search_mode: Mode | None = None,
        session_id: str | None = None,
        explain: bool = False,
        request: UnifiedSearchRequest | dict[str, Any] | None = None,
    ) -> UnifiedSearchResponse:
        """What fits the query: facts about the user, what the user taught, and what was approved for everybody.

        Without `user_id` only the last. What a found agent playbook was made of is not repeated.
        """
        whole = query if isinstance(query, UnifiedSearchRequest | dict) else request

        async def call() -> UnifiedSearchResponse:
            wanted = asked(
                UnifiedSearchRequest,
                whole,
                {
                    "query": query,
                    "user_id": user_id,
                    "agent_version": agent_version,
                    "playbook_name": playbook_name,
                    "top_k": top_k,
                    "threshold": threshold,
                    "source": source,
                    "tags": tags,
                    "entity_types": entity_types,
                    "agent_playbook_status_filter": agent_playbook_status_filter,
                    "search_mode": search_mode,
                    "session_id": session_id,
                    "explain": explain,
                },
            )
            return await self._call("POST", "/api/search", UnifiedSearchResponse, wanted)

        return await self._gently(call, UnifiedSearchResponse)

    search_async = awaited(search)

    async def get_context(
        self,
        query: str,
        *,
        user_id: str | None = None,
        agent_version: str | None = None,
        max_tokens: int | None = None,
        include_pending: bool = False,
    ) -> ContextResponse:
        """The text to put into the next prompt, within `max_tokens`, and the ids of what is inside."""

        async def call() -> ContextResponse:
            asked = build(
                ContextRequest,
                {
                    "query": query,
                    "user_id": user_id,
                    "agent_version": agent_version,
                    "max_tokens": max_tokens,
                    "include_pending": include_pending,
                },
            )
            return await self._call("POST", "/api/context", ContextResponse, asked)

        return await self._gently(call, ContextResponse)

    async def search_user_profiles(
        self,
        user_id: str | SearchUserProfilesRequest | dict[str, Any] | None = None,
        query: str | None = None,
        *,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        top_k: int | None = None,
        source: str | None = None,
        generated_from_request_id: str | None = None,
        tags: Sequence[str] | None = None,
        threshold: float | None = None,
        search_mode: Mode | None = None,
        explain: bool = False,
        request: SearchUserProfilesRequest | dict[str, Any] | None = None,
    ) -> SearchProfilesResponse:
        """A user's current profiles that fit the query, best first; without a query the newest."""
        whole = user_id if isinstance(user_id, SearchUserProfilesRequest | dict) else request

        async def call() -> SearchProfilesResponse:
            wanted = asked(
                SearchUserProfilesRequest,
                whole,
                {
                    "user_id": user_id,
                    "query": query,
                    "start_time": zoned(start_time),
                    "end_time": zoned(end_time),
                    "top_k": top_k,
                    "source": source,
                    "generated_from_request_id": generated_from_request_id,
                    "tags": tags,
                    "threshold": threshold,
                    "search_mode": search_mode,
                    "explain": explain,
                },
            )
            return await self._call("POST", "/api/search_profiles", SearchProfilesResponse, wanted)

        return await self._gently(call, SearchProfilesResponse)

    async def search_profiles(
        self,
        user_id: str | SearchUserProfilesRequest | dict[str, Any] | None = None,
        query: str | None = None,
        **given: Any,
    ) -> SearchProfilesResponse:
        """The former name of `search_user_profiles`."""
        warnings.warn("search_profiles is now called search_user_profiles", DeprecationWarning, stacklevel=2)
        return await self.search_user_profiles(user_id, query, **given)

    async def search_user_playbooks(
        self,
        query: str | SearchUserPlaybooksRequest | dict[str, Any] | None = None,
        *,
        user_id: str | None = None,
        agent_version: str | None = None,
        playbook_name: str | None = None,
        source: str | None = None,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        status_filter: Sequence[Status | str | None] | None = None,
        tags: Sequence[str] | None = None,
        top_k: int | None = None,
        threshold: float | None = None,
        search_mode: Mode | None = None,
        explain: bool = False,
        request: SearchUserPlaybooksRequest | dict[str, Any] | None = None,
    ) -> SearchUserPlaybooksResponse:
        """User playbooks that fit the query, best first, of one user or of all; without a query the newest."""
        whole = query if isinstance(query, SearchUserPlaybooksRequest | dict) else request

        async def call() -> SearchUserPlaybooksResponse:
            wanted = asked(
                SearchUserPlaybooksRequest,
                whole,
                {
                    "query": query,
                    "user_id": user_id,
                    "agent_version": agent_version,
                    "playbook_name": playbook_name,
                    "source": source,
                    "start_time": zoned(start_time),
                    "end_time": zoned(end_time),
                    "status_filter": status_filter,
                    "tags": tags,
                    "top_k": top_k,
                    "threshold": threshold,
                    "search_mode": search_mode,
                    "explain": explain,
                },
            )
            return await self._call("POST", "/api/search_user_playbooks", SearchUserPlaybooksResponse, wanted)

        return await self._gently(call, SearchUserPlaybooksResponse)

    async def search_agent_playbooks(
        self,
        query: str | SearchAgentPlaybooksRequest | dict[str, Any] | None = None,
        *,
        agent_version: str | None = None,
        playbook_name: str | None = None,
        source: str | None = None,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        status_filter: Sequence[Status | str | None] | None = None,
        playbook_status_filter: PlaybookStatus | str | Sequence[PlaybookStatus | str] | None = None,
        tags: Sequence[str] | None = None,
        top_k: int | None = None,
        threshold: float | None = None,
        search_mode: Mode | None = None,
        explain: bool = False,
        request: SearchAgentPlaybooksRequest | dict[str, Any] | None = None,
    ) -> SearchAgentPlaybooksResponse:
        """Approved agent playbooks that fit the query, best first; others when a filter names them."""
        whole = query if isinstance(query, SearchAgentPlaybooksRequest | dict) else request

        async def call() -> SearchAgentPlaybooksResponse:
            wanted = asked(
                SearchAgentPlaybooksRequest,
                whole,
                {
                    "query": query,
                    "agent_version": agent_version,
                    "playbook_name": playbook_name,
                    "source": source,
                    "start_time": zoned(start_time),
                    "end_time": zoned(end_time),
                    "status_filter": status_filter,
                    "playbook_status_filter": playbook_status_filter,
                    "tags": tags,
                    "top_k": top_k,
                    "threshold": threshold,
                    "search_mode": search_mode,
                    "explain": explain,
                },
            )
            return await self._call("POST", "/api/search_agent_playbooks", SearchAgentPlaybooksResponse, wanted)

        return await self._gently(call, SearchAgentPlaybooksResponse)

    async def search_interactions(
        self,
        user_id: str | SearchInteractionsRequest | dict[str, Any] | None = None,
        query: str | None = None,
        *,
        request_id: str | None = None,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        top_k: int | None = None,
        most_recent_k: int | None = None,
        threshold: float | None = None,
        search_mode: Mode | None = None,
        explain: bool = False,
        request: SearchInteractionsRequest | dict[str, Any] | None = None,
    ) -> SearchInteractionsResponse:
        """A user's turns that fit the query, best first; without a query the newest."""
        whole = user_id if isinstance(user_id, SearchInteractionsRequest | dict) else request

        async def call() -> SearchInteractionsResponse:
            wanted = asked(
                SearchInteractionsRequest,
                whole,
                {
                    "user_id": user_id,
                    "query": query,
                    "request_id": request_id,
                    "start_time": zoned(start_time),
                    "end_time": zoned(end_time),
                    "top_k": top_k,
                    "most_recent_k": most_recent_k,
                    "threshold": threshold,
                    "search_mode": search_mode,
                    "explain": explain,
                },
            )
            return await self._call("POST", "/api/search_interactions", SearchInteractionsResponse, wanted)

        return await self._gently(call, SearchInteractionsResponse)
