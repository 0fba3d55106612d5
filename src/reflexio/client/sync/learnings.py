# Generated from client/aio/learnings.py by scripts/make_sync_client.py. Change that file and run `make format`.
"""Profiles, user playbooks and agent playbooks: add, list, change, delete."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from reflexio.client.answers import asked, build
from reflexio.client.sync.calls import Calls, zoned
from reflexio.models.interaction import BulkDeleteResponse, DeleteResponse
from reflexio.models.playbook import (
    AddAgentPlaybookRequest,
    AddUserPlaybookRequest,
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
    UpdateAgentPlaybookRequest,
    UpdatePlaybookStatusRequest,
    UpdateUserPlaybookRequest,
)
from reflexio.models.profile import (
    AddResponse,
    AddUserProfileRequest,
    DeleteProfilesByIdsRequest,
    DeleteUserProfileRequest,
    GetProfilesResponse,
    GetUserProfilesRequest,
    NewUserProfile,
    UpdateResponse,
    UpdateUserProfileRequest,
)
from reflexio.models.provenance import GetLearningProvenanceRequest, LearningProvenanceResponse
from reflexio.models.status import PlaybookStatus, Status

PROFILES, AGENT = ("profiles",), ("agent_playbooks",)
Statuses = Sequence[Status | str | None]


class LearningCalls(Calls):
    """Profiles and playbooks."""

    def add_user_profile(self, user_profiles: Sequence[NewUserProfile | dict[str, Any]]) -> AddResponse:
        """Stores facts about users that you know already, up to 1,000 a call, all or none."""
        wanted = build(AddUserProfileRequest, {"user_profiles": list(user_profiles)})
        done = self._call("POST", "/api/add_user_profile", AddResponse, wanted, repeatable=False)
        self._cache.forget(*PROFILES)
        return done

    def get_profiles(
        self,
        user_id: str | GetUserProfilesRequest | dict[str, Any] | None = None,
        *,
        profile_id: str | None = None,
        query: str | None = None,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        top_k: int | None = None,
        source: str | None = None,
        profile_time_to_live: str | None = None,
        status_filter: Statuses | None = None,
        tags: Sequence[str] | None = None,
        cursor: str | None = None,
        force_refresh: bool = False,
        request: GetUserProfilesRequest | dict[str, Any] | None = None,
    ) -> GetProfilesResponse:
        """A user's profiles, newest first; current ones unless `status_filter` says otherwise. Cached."""
        whole = user_id if isinstance(user_id, GetUserProfilesRequest | dict) else request
        wanted = asked(
            GetUserProfilesRequest,
            whole,
            {
                "user_id": user_id,
                "profile_id": profile_id,
                "query": query,
                "start_time": zoned(start_time),
                "end_time": zoned(end_time),
                "top_k": top_k,
                "source": source,
                "profile_time_to_live": profile_time_to_live,
                "status_filter": status_filter,
                "tags": tags,
                "cursor": cursor,
            },
        )

        def call() -> GetProfilesResponse:
            return self._call("POST", "/api/get_profiles", GetProfilesResponse, wanted)

        question = wanted.model_dump_json()
        found = self._cached("profiles", question, GetProfilesResponse, call, force_refresh=force_refresh)
        return found.alive()

    def get_all_profiles(
        self,
        limit: int = 100,
        *,
        status_filter: Status | str | None = None,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        cursor: str | None = None,
    ) -> GetProfilesResponse:
        """Everybody's profiles in the organisation, newest first."""
        params = {
            "limit": limit,
            "status_filter": status_filter,
            "start_time": start_time and start_time.astimezone().isoformat(),
            "end_time": end_time and end_time.astimezone().isoformat(),
            "cursor": cursor,
        }

        def call() -> GetProfilesResponse:
            return self._call("GET", "/api/get_all_profiles", GetProfilesResponse, params=params)

        return self._gently(call, GetProfilesResponse)

    def update_user_profile(
        self,
        user_id: str,
        profile_id: str,
        *,
        content: str | None = None,
        custom_features: dict[str, Any] | None = None,
    ) -> UpdateResponse:
        """Changes a profile; what is not given stays."""
        wanted = build(
            UpdateUserProfileRequest,
            {"user_id": user_id, "profile_id": profile_id, "content": content, "custom_features": custom_features},
        )
        return self._change("/api/update_user_profile", wanted, PROFILES)

    def delete_profile(
        self, user_id: str, profile_id: str = "", search_query: str = "", wait_for_response: bool = False
    ) -> DeleteResponse | None:
        """Deletes one profile by its id, or those of the user that contain a text: in the background, unless
        `wait_for_response` is true.
        """
        which = build(
            DeleteUserProfileRequest, {"user_id": user_id, "profile_id": profile_id, "search_query": search_query}
        )
        return self._delete("/api/delete_profile", DeleteResponse, which, topics=PROFILES, wait=wait_for_response)

    def delete_profiles_by_ids(self, profile_ids: Sequence[str]) -> BulkDeleteResponse:
        """Deletes several profiles; unknown ids are passed over."""
        which = build(DeleteProfilesByIdsRequest, {"profile_ids": list(profile_ids)})
        return self._delete_many("/api/delete_profiles_by_ids", which, PROFILES)

    def delete_all_profiles(self) -> BulkDeleteResponse:
        """Deletes all profiles of the organisation."""
        return self._delete_many("/api/delete_all_profiles", None, PROFILES)

    def add_user_playbook(self, user_playbooks: Sequence[NewUserPlaybook | dict[str, Any]]) -> AddResponse:
        """Stores what single users taught, up to 1,000 a call, all or none; `ids` of the answer names them."""
        wanted = build(AddUserPlaybookRequest, {"user_playbooks": list(user_playbooks)})
        return self._call("POST", "/api/add_user_playbook", AddResponse, wanted, repeatable=False)

    def get_user_playbooks(
        self,
        request: GetUserPlaybooksRequest | dict[str, Any] | None = None,
        *,
        limit: int | None = None,
        user_playbook_id: int | None = None,
        user_id: str | None = None,
        request_id: str | None = None,
        query: str | None = None,
        playbook_name: str | None = None,
        agent_version: str | None = None,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        status_filter: Statuses | None = None,
        tags: Sequence[str] | None = None,
        cursor: str | None = None,
    ) -> GetUserPlaybooksResponse:
        """User playbooks, newest first; current ones unless `status_filter` says otherwise."""

        def call() -> GetUserPlaybooksResponse:
            wanted = asked(
                GetUserPlaybooksRequest,
                request,
                {
                    "limit": limit,
                    "user_playbook_id": user_playbook_id,
                    "user_id": user_id,
                    "request_id": request_id,
                    "query": query,
                    "playbook_name": playbook_name,
                    "agent_version": agent_version,
                    "start_time": zoned(start_time),
                    "end_time": zoned(end_time),
                    "status_filter": status_filter,
                    "tags": tags,
                    "cursor": cursor,
                },
            )
            return self._call("POST", "/api/get_user_playbooks", GetUserPlaybooksResponse, wanted)

        return self._gently(call, GetUserPlaybooksResponse)

    def update_user_playbook(
        self,
        user_playbook_id: int,
        *,
        playbook_name: str | None = None,
        content: str | None = None,
        trigger: str | None = None,
        rationale: str | None = None,
    ) -> UpdateResponse:
        """Changes a user playbook; what is not given stays."""
        wanted = build(
            UpdateUserPlaybookRequest,
            {
                "user_playbook_id": user_playbook_id,
                "playbook_name": playbook_name,
                "content": content,
                "trigger": trigger,
                "rationale": rationale,
            },
        )
        return self._change("/api/update_user_playbook", wanted, ())

    def delete_user_playbook(self, user_playbook_id: int, wait_for_response: bool = False) -> DeleteResponse | None:
        """Deletes one user playbook: in the background, unless `wait_for_response` is true."""
        which = build(DeleteUserPlaybookRequest, {"user_playbook_id": user_playbook_id})
        return self._delete("/api/delete_user_playbook", DeleteResponse, which, wait=wait_for_response)

    def delete_user_playbooks_by_ids(self, user_playbook_ids: Sequence[int]) -> BulkDeleteResponse:
        """Deletes several user playbooks; unknown ids are passed over."""
        which = build(DeleteUserPlaybooksByIdsRequest, {"user_playbook_ids": list(user_playbook_ids)})
        return self._delete_many("/api/delete_user_playbooks_by_ids", which, ())

    def delete_all_user_playbooks(self) -> BulkDeleteResponse:
        """Deletes all user playbooks of the organisation."""
        return self._delete_many("/api/delete_all_user_playbooks", None, ())

    def add_agent_playbooks(self, agent_playbooks: Sequence[NewAgentPlaybook | dict[str, Any]]) -> AddResponse:
        """Stores what is to hold for everybody, up to 1,000 a call. Pending unless `playbook_status` says otherwise."""
        wanted = build(AddAgentPlaybookRequest, {"agent_playbooks": list(agent_playbooks)})
        done = self._call("POST", "/api/add_agent_playbook", AddResponse, wanted, repeatable=False)
        self._cache.forget(*AGENT)
        return done

    def get_agent_playbooks(
        self,
        request: GetAgentPlaybooksRequest | dict[str, Any] | None = None,
        *,
        limit: int | None = None,
        agent_playbook_id: int | None = None,
        query: str | None = None,
        playbook_name: str | None = None,
        agent_version: str | None = None,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        status_filter: Statuses | None = None,
        playbook_status_filter: PlaybookStatus | str | Sequence[PlaybookStatus | str] | None = None,
        tags: Sequence[str] | None = None,
        cursor: str | None = None,
        force_refresh: bool = False,
    ) -> GetAgentPlaybooksResponse:
        """Agent playbooks of any decision, newest first. Cached.

        A `status_filter` of pending also means those that wait for a decision.
        """
        wanted = asked(
            GetAgentPlaybooksRequest,
            request,
            {
                "limit": limit,
                "agent_playbook_id": agent_playbook_id,
                "query": query,
                "playbook_name": playbook_name,
                "agent_version": agent_version,
                "start_time": zoned(start_time),
                "end_time": zoned(end_time),
                "status_filter": status_filter,
                "playbook_status_filter": playbook_status_filter,
                "tags": tags,
                "cursor": cursor,
            },
        )

        def call() -> GetAgentPlaybooksResponse:
            return self._call("POST", "/api/get_agent_playbooks", GetAgentPlaybooksResponse, wanted)

        question = wanted.model_dump_json()
        return self._cached("agent_playbooks", question, GetAgentPlaybooksResponse, call, force_refresh=force_refresh)

    def update_agent_playbook(
        self,
        agent_playbook_id: int,
        *,
        playbook_name: str | None = None,
        content: str | None = None,
        trigger: str | None = None,
        rationale: str | None = None,
        playbook_status: PlaybookStatus | str | None = None,
        reviewer: str | None = None,
        reason: str | None = None,
    ) -> UpdateResponse:
        """Changes the wording of an agent playbook, the decision about it, or both; what is not given stays."""
        wanted = build(
            UpdateAgentPlaybookRequest,
            {
                "agent_playbook_id": agent_playbook_id,
                "playbook_name": playbook_name,
                "content": content,
                "trigger": trigger,
                "rationale": rationale,
                "playbook_status": playbook_status,
                "reviewer": reviewer,
                "reason": reason,
            },
        )
        return self._change("/api/update_agent_playbook", wanted, AGENT)

    def update_agent_playbook_status(
        self,
        agent_playbook_id: int,
        *,
        playbook_status: PlaybookStatus | str,
        reviewer: str | None = None,
        reason: str | None = None,
    ) -> UpdateResponse:
        """Approves, rejects or reopens an agent playbook. Who, when and why are kept."""
        wanted = build(
            UpdatePlaybookStatusRequest,
            {
                "agent_playbook_id": agent_playbook_id,
                "playbook_status": playbook_status,
                "reviewer": reviewer,
                "reason": reason,
            },
        )
        return self._change("/api/update_agent_playbook_status", wanted, AGENT)

    def delete_agent_playbook(self, agent_playbook_id: int, wait_for_response: bool = False) -> DeleteResponse | None:
        """Deletes one agent playbook: in the background, unless `wait_for_response` is true."""
        which = build(DeleteAgentPlaybookRequest, {"agent_playbook_id": agent_playbook_id})
        return self._delete("/api/delete_agent_playbook", DeleteResponse, which, topics=AGENT, wait=wait_for_response)

    def delete_agent_playbooks_by_ids(self, agent_playbook_ids: Sequence[int]) -> BulkDeleteResponse:
        """Deletes several agent playbooks; unknown ids are passed over."""
        which = build(DeleteAgentPlaybooksByIdsRequest, {"agent_playbook_ids": list(agent_playbook_ids)})
        return self._delete_many("/api/delete_agent_playbooks_by_ids", which, AGENT)

    def delete_all_agent_playbooks(self) -> BulkDeleteResponse:
        """Deletes all agent playbooks of the organisation."""
        return self._delete_many("/api/delete_all_agent_playbooks", None, AGENT)

    def delete_all_playbooks(self) -> BulkDeleteResponse:
        """Deletes all user playbooks and agent playbooks of the organisation."""
        return self._delete_many("/api/delete_all_playbooks", None, AGENT)

    def get_provenance(self, kind: str, id: str | int) -> LearningProvenanceResponse:  # noqa: A002  its public name
        """Why a learning is there: the turns it came from, who learned it, what it replaced, what happened to it.

        `kind` is `profile`, `user_playbook` or `agent_playbook`. Raises NotFound when there is none.
        """
        which = build(GetLearningProvenanceRequest, {"kind": kind, "id": str(id)})
        return self._call("POST", "/api/get_learning_provenance", LearningProvenanceResponse, which)
