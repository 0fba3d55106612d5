# Generated from client/aio/search.py by scripts/make_sync_client.py. Change that file and run `make format`.
"""Search and context: what to put into the next prompt."""

import warnings
from typing import Any, Unpack

from reflexio.client import routes
from reflexio.client.fields import (
    ContextFields,
    SearchAgentPlaybooksFields,
    SearchInteractionsFields,
    SearchUserPlaybooksFields,
    SearchUserProfilesFields,
    UnifiedSearchFields,
)
from reflexio.client.requests import awaitable
from reflexio.client.sync.connection import Connection
from reflexio.models.search import (
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


class SearchCalls(Connection):
    """Search and context."""

    def search(
        self, query: str | UnifiedSearchRequest | dict[str, Any] | None = None, **fields: Unpack[UnifiedSearchFields]
    ) -> UnifiedSearchResponse:
        """Profiles and user playbooks of the user and approved agent playbooks that fit the query.

        Without `user_id` only agent playbooks. User playbooks that a found agent playbook was made of are left out.
        """
        return self._send(routes.SEARCH, fields, query=query)

    search_async = awaitable(search)

    def get_context(self, query: str | None = None, **fields: Unpack[ContextFields]) -> ContextResponse:
        """The text to put into the next prompt, within `max_tokens`, and the learnings in it with their layers.

        Without a query it has what always holds for the user.
        """
        return self._send(routes.GET_CONTEXT, fields, query=query)

    def search_user_profiles(
        self,
        user_id: str | SearchUserProfilesRequest | dict[str, Any] | None = None,
        query: str | None = None,
        **fields: Unpack[SearchUserProfilesFields],
    ) -> SearchProfilesResponse:
        """A user's current profiles that fit the query, best first. Without a query the newest."""
        return self._send(routes.SEARCH_PROFILES, fields, user_id=user_id, query=query)

    def search_profiles(
        self,
        user_id: str | SearchUserProfilesRequest | dict[str, Any] | None = None,
        query: str | None = None,
        **fields: Unpack[SearchUserProfilesFields],
    ) -> SearchProfilesResponse:
        """The former name of `search_user_profiles`."""
        warnings.warn("search_profiles is now called search_user_profiles", DeprecationWarning, stacklevel=2)
        return self.search_user_profiles(user_id, query, **fields)

    def search_user_playbooks(
        self,
        query: str | SearchUserPlaybooksRequest | dict[str, Any] | None = None,
        **fields: Unpack[SearchUserPlaybooksFields],
    ) -> SearchUserPlaybooksResponse:
        """User playbooks of one user or of all that fit the query, best first. Without a query the newest."""
        return self._send(routes.SEARCH_USER_PLAYBOOKS, fields, query=query)

    def search_agent_playbooks(
        self,
        query: str | SearchAgentPlaybooksRequest | dict[str, Any] | None = None,
        **fields: Unpack[SearchAgentPlaybooksFields],
    ) -> SearchAgentPlaybooksResponse:
        """Approved agent playbooks that fit the query, best first. Filters can ask for others."""
        return self._send(routes.SEARCH_AGENT_PLAYBOOKS, fields, query=query)

    def search_interactions(
        self,
        user_id: str | SearchInteractionsRequest | dict[str, Any] | None = None,
        query: str | None = None,
        **fields: Unpack[SearchInteractionsFields],
    ) -> SearchInteractionsResponse:
        """A user's turns that fit the query, best first. Without a query the newest."""
        return self._send(routes.SEARCH_INTERACTIONS, fields, user_id=user_id, query=query)
