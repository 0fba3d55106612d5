"""Profiles, user playbooks and agent playbooks: add, list, change, delete, judge and review them."""

from collections.abc import Sequence
from typing import Any, Unpack

from reflexio.client import routes
from reflexio.client.aio.connection import Connection
from reflexio.client.fields import (
    GetAgentPlaybooksFields,
    GetAllProfilesFields,
    GetReviewQueueFields,
    GetUserPlaybooksFields,
    GetUserProfilesFields,
    RecordOutcomeFields,
    ReviewAgentPlaybooksFields,
    UndoReviewFields,
    UpdateAgentPlaybookFields,
    UpdatePlaybookStatusFields,
    UpdateUserPlaybookFields,
    UpdateUserProfileFields,
)
from reflexio.models.interaction import BulkDeleteResponse, DeleteResponse
from reflexio.models.learning import PlaybookStatus
from reflexio.models.playbook import (
    GetAgentPlaybooksRequest,
    GetAgentPlaybooksResponse,
    GetUserPlaybooksRequest,
    GetUserPlaybooksResponse,
    NewAgentPlaybook,
    NewUserPlaybook,
    Outcome,
)
from reflexio.models.profile import (
    AddResponse,
    GetProfilesResponse,
    GetUserProfilesRequest,
    NewUserProfile,
    UpdateResponse,
)
from reflexio.models.review import GetReviewQueueResponse, LearningProvenanceResponse, ReviewResponse


class LearningCalls(Connection):
    """Profiles and playbooks."""

    async def add_user_profile(self, user_profiles: Sequence[NewUserProfile | dict[str, Any]]) -> AddResponse:
        """Stores facts about users that you know already, up to 1,000 in a call, all of them or none."""
        return await self._send(routes.ADD_PROFILES, user_profiles=list(user_profiles))

    async def get_profiles(
        self,
        user_id: str | GetUserProfilesRequest | dict[str, Any] | None = None,
        *,
        force_refresh: bool = False,
        **fields: Unpack[GetUserProfilesFields],
    ) -> GetProfilesResponse:
        """A user's profiles, newest first. Without `status_filter` only current ones. Cached."""
        return (await self._send_cached(routes.GET_PROFILES, force_refresh, fields, user_id=user_id)).alive()

    async def get_all_profiles(self, limit: int = 100, **fields: Unpack[GetAllProfilesFields]) -> GetProfilesResponse:
        """Profiles of one user or of all, newest first.

        `start_time` and `end_time` are of the last change, or of the expiry with
        `date_field="expiration_timestamp"`.
        """
        return await self._send(routes.GET_ALL_PROFILES, fields, limit=limit)

    async def update_user_profile(
        self, user_id: str, profile_id: str, **fields: Unpack[UpdateUserProfileFields]
    ) -> UpdateResponse:
        """Changes a profile. Fields that are not given keep their values."""
        return await self._send(routes.UPDATE_PROFILE, fields, user_id=user_id, profile_id=profile_id)

    async def delete_profile(
        self, user_id: str, profile_id: str = "", search_query: str = "", wait_for_response: bool = False
    ) -> DeleteResponse | None:
        """Deletes one profile by its id, or the profiles of the user that contain a text.

        It does so in the background, unless `wait_for_response` is true.
        """
        return await self._delete(
            routes.DELETE_PROFILE, wait_for_response, user_id=user_id, profile_id=profile_id, search_query=search_query
        )

    async def delete_profiles_by_ids(self, profile_ids: Sequence[str]) -> BulkDeleteResponse:
        """Deletes several profiles; unknown ids are ignored."""
        return await self._send(routes.DELETE_PROFILES, profile_ids=list(profile_ids))

    async def delete_all_profiles(self) -> BulkDeleteResponse:
        """Deletes all profiles of all users of the organisation; it cannot be undone."""
        return await self._send(routes.DELETE_ALL_PROFILES)

    async def add_user_playbook(self, user_playbooks: Sequence[NewUserPlaybook | dict[str, Any]]) -> AddResponse:
        """Stores user playbooks, up to 1,000 in a call, all of them or none. The response holds their `ids`."""
        return await self._send(routes.ADD_USER_PLAYBOOKS, user_playbooks=list(user_playbooks))

    async def get_user_playbooks(
        self, request: GetUserPlaybooksRequest | dict[str, Any] | None = None, **fields: Unpack[GetUserPlaybooksFields]
    ) -> GetUserPlaybooksResponse:
        """User playbooks, newest first. Without `status_filter` only current ones."""
        return await self._send(routes.GET_USER_PLAYBOOKS, fields, request=request)

    async def update_user_playbook(
        self, user_playbook_id: int, **fields: Unpack[UpdateUserPlaybookFields]
    ) -> UpdateResponse:
        """Changes a user playbook. Fields that are not given keep their values."""
        return await self._send(routes.UPDATE_USER_PLAYBOOK, fields, user_playbook_id=user_playbook_id)

    async def delete_user_playbook(
        self, user_playbook_id: int, wait_for_response: bool = False
    ) -> DeleteResponse | None:
        """Deletes one user playbook: in the background, unless `wait_for_response` is true."""
        return await self._delete(routes.DELETE_USER_PLAYBOOK, wait_for_response, user_playbook_id=user_playbook_id)

    async def delete_user_playbooks_by_ids(self, user_playbook_ids: Sequence[int]) -> BulkDeleteResponse:
        """Deletes several user playbooks; unknown ids are ignored."""
        return await self._send(routes.DELETE_USER_PLAYBOOKS, user_playbook_ids=list(user_playbook_ids))

    async def delete_all_user_playbooks(self) -> BulkDeleteResponse:
        """Deletes all user playbooks of all users of the organisation; it cannot be undone."""
        return await self._send(routes.DELETE_ALL_USER_PLAYBOOKS)

    async def add_agent_playbooks(self, agent_playbooks: Sequence[NewAgentPlaybook | dict[str, Any]]) -> AddResponse:
        """Stores agent playbooks, up to 1,000 in a call. They are pending unless they have a `playbook_status`."""
        return await self._send(routes.ADD_AGENT_PLAYBOOKS, agent_playbooks=list(agent_playbooks))

    async def get_agent_playbooks(
        self,
        request: GetAgentPlaybooksRequest | dict[str, Any] | None = None,
        *,
        force_refresh: bool = False,
        **fields: Unpack[GetAgentPlaybooksFields],
    ) -> GetAgentPlaybooksResponse:
        """Agent playbooks of any review status, newest first. Cached.

        A `status_filter` of pending also finds those that wait for review.
        """
        return await self._send_cached(routes.GET_AGENT_PLAYBOOKS, force_refresh, fields, request=request)

    async def update_agent_playbook(
        self, agent_playbook_id: int, **fields: Unpack[UpdateAgentPlaybookFields]
    ) -> UpdateResponse:
        """Changes the wording of an agent playbook, its status, or both. Other fields keep their values."""
        return await self._send(routes.UPDATE_AGENT_PLAYBOOK, fields, agent_playbook_id=agent_playbook_id)

    async def update_agent_playbook_status(
        self,
        agent_playbook_id: int,
        *,
        playbook_status: PlaybookStatus | str,
        **fields: Unpack[UpdatePlaybookStatusFields],
    ) -> UpdateResponse:
        """Approves, rejects or reopens an agent playbook. The history keeps reviewer, time and reason."""
        return await self._send(
            routes.UPDATE_STATUS, fields, agent_playbook_id=agent_playbook_id, playbook_status=playbook_status
        )

    async def delete_agent_playbook(
        self, agent_playbook_id: int, wait_for_response: bool = False
    ) -> DeleteResponse | None:
        """Deletes one agent playbook: in the background, unless `wait_for_response` is true."""
        return await self._delete(routes.DELETE_AGENT_PLAYBOOK, wait_for_response, agent_playbook_id=agent_playbook_id)

    async def delete_agent_playbooks_by_ids(self, agent_playbook_ids: Sequence[int]) -> BulkDeleteResponse:
        """Deletes several agent playbooks; unknown ids are ignored."""
        return await self._send(routes.DELETE_AGENT_PLAYBOOKS, agent_playbook_ids=list(agent_playbook_ids))

    async def delete_all_agent_playbooks(self) -> BulkDeleteResponse:
        """Deletes all agent playbooks of the organisation; it cannot be undone."""
        return await self._send(routes.DELETE_ALL_AGENT_PLAYBOOKS)

    async def delete_all_playbooks(self) -> BulkDeleteResponse:
        """Deletes all user playbooks and agent playbooks of the organisation; it cannot be undone."""
        return await self._send(routes.DELETE_ALL_PLAYBOOKS)

    async def get_provenance(self, kind: str, id: str | int) -> LearningProvenanceResponse:  # noqa: A002  its public name
        """Where a learning comes from: its turns, the learner, what it replaced, and its history.

        `kind` is `profile`, `user_playbook` or `agent_playbook`. Raises NotFound for an unknown id.
        """
        return await self._send(routes.GET_PROVENANCE, kind=kind, id=str(id))


class OutcomeCalls(Connection):
    """What playbooks were worth."""

    async def record_outcome(self, outcome: Outcome, **fields: Unpack[RecordOutcomeFields]) -> UpdateResponse:
        """Counts that playbooks helped, hurt, or were learned again. Unknown ids are ignored."""
        return await self._send(routes.RECORD_OUTCOME, fields, outcome=outcome)


class ReviewCalls(Connection):
    """Review."""

    async def get_review_queue(self, **fields: Unpack[GetReviewQueueFields]) -> GetReviewQueueResponse:
        """Agent playbooks that wait for review, each with evidence, support, disagreement and difference.

        With `agent_playbook_id` only that one, whatever its status. Raises NotFound for an unknown id.
        """
        return await self._send(routes.GET_REVIEW_QUEUE, fields)

    async def review_agent_playbooks(
        self,
        agent_playbook_ids: Sequence[int],
        *,
        playbook_status: PlaybookStatus | str,
        **fields: Unpack[ReviewAgentPlaybooksFields],
    ) -> ReviewResponse:
        """Approves, rejects or reopens several agent playbooks, all of them or none.

        The history keeps reviewer, time and reason. Approving a playbook retires those that it replaces.
        `update_agent_playbook` edits and approves in one call.
        """
        ids = list(agent_playbook_ids)
        return await self._send(routes.REVIEW, fields, agent_playbook_ids=ids, playbook_status=playbook_status)

    async def undo_review(
        self, agent_playbook_ids: Sequence[int], **fields: Unpack[UndoReviewFields]
    ) -> ReviewResponse:
        """Takes back the last decision about each playbook, with its edit, and restores what it had retired.

        All of them or none: raises Conflict if one has no decision to take back.
        """
        return await self._send(routes.UNDO_REVIEW, fields, agent_playbook_ids=list(agent_playbook_ids))
