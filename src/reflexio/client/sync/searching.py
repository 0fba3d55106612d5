# Generated from client/aio/searching.py by scripts/make_sync_client.py. Change that file and run `make format`.
"""Search and context: what to put into the next prompt."""

from collections.abc import Sequence
from datetime import datetime

from reflexio.client.answers import build
from reflexio.client.sync.calls import Calls, zoned
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
    def search(
        self,
        query: str,
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
    ) -> UnifiedSearchResponse:
        """What fits the query: facts about the user, what the user taught, and what was approved for everybody."""

        def call() -> UnifiedSearchResponse:
            asked = build(
                UnifiedSearchRequest,
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
            return self._call("POST", "/api/search", UnifiedSearchResponse, asked)

        return self._gently(call, UnifiedSearchResponse)

    def get_context(
        self,
        query: str,
        *,
        user_id: str | None = None,
        agent_version: str | None = None,
        max_tokens: int | None = None,
        include_pending: bool = False,
    ) -> ContextResponse:
        """The text to put into the next prompt, within `max_tokens`, and the ids of what is inside."""

        def call() -> ContextResponse:
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
            return self._call("POST", "/api/context", ContextResponse, asked)

        return self._gently(call, ContextResponse)

    def search_user_profiles(
        self,
        user_id: str,
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
    ) -> SearchProfilesResponse:
        """A user's profiles that fit the query; the newest ones without a query."""

        def call() -> SearchProfilesResponse:
            asked = build(
                SearchUserProfilesRequest,
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
            return self._call("POST", "/api/search_profiles", SearchProfilesResponse, asked)

        return self._gently(call, SearchProfilesResponse)

    def search_user_playbooks(
        self,
        query: str | None = None,
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
    ) -> SearchUserPlaybooksResponse:
        """User playbooks that fit the query, of one user or of all."""

        def call() -> SearchUserPlaybooksResponse:
            asked = build(
                SearchUserPlaybooksRequest,
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
            return self._call("POST", "/api/search_user_playbooks", SearchUserPlaybooksResponse, asked)

        return self._gently(call, SearchUserPlaybooksResponse)

    def search_agent_playbooks(
        self,
        query: str | None = None,
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
    ) -> SearchAgentPlaybooksResponse:
        """Approved agent playbooks that fit the query; others when they are asked for by name."""

        def call() -> SearchAgentPlaybooksResponse:
            asked = build(
                SearchAgentPlaybooksRequest,
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
            return self._call("POST", "/api/search_agent_playbooks", SearchAgentPlaybooksResponse, asked)

        return self._gently(call, SearchAgentPlaybooksResponse)

    def search_interactions(
        self,
        user_id: str,
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
    ) -> SearchInteractionsResponse:
        """A user's turns that fit the query."""

        def call() -> SearchInteractionsResponse:
            asked = build(
                SearchInteractionsRequest,
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
            return self._call("POST", "/api/search_interactions", SearchInteractionsResponse, asked)

        return self._gently(call, SearchInteractionsResponse)
