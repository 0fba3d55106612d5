"""Publishing, browsing and deleting turns and the requests that published them."""

from collections.abc import Sequence
from typing import Any, Unpack

from reflexio.client import routes
from reflexio.client.aio.connection import Connection, log
from reflexio.client.fields import GetInteractionsFields, GetRequestsFields
from reflexio.client.requests import awaitable
from reflexio.client.salvage import without_faults
from reflexio.models.identity import new_id
from reflexio.models.interaction import (
    BulkDeleteResponse,
    ClearUserDataResponse,
    DeleteResponse,
    DeleteSessionResponse,
    FinalizeSessionResponse,
    GetInteractionsRequest,
    GetInteractionsResponse,
    GetRequestsRequest,
    GetRequestsResponse,
    InteractionData,
    PublishResponse,
)


class InteractionCalls(Connection):
    """Publishing, browsing, deleting."""

    async def publish_interaction(
        self,
        user_id: str,
        interactions: Sequence[InteractionData | dict[str, Any]],
        source: str = "",
        agent_version: str = "",
        session_id: str | None = None,
        wait_for_response: bool = False,
        skip_aggregation: bool = False,
        force_extraction: bool = False,
        evaluation_only: bool = False,
        override_learning_stall: bool = False,
        retrieval_experiment_id: str | None = None,
        retrieval_experiment_arm: str | None = None,
        session_finished: bool = False,
        *,
        idempotency_key: str | None = None,
    ) -> PublishResponse:
        """Stores turns of a conversation. They are on disk when this returns.

        Without `session_id` the server makes one and returns it. Calls with the same `idempotency_key` are stored once;
        each call makes its own key, so that repeating it on a bad connection is safe. With `wait_for_response` the
        server first learns from exactly these turns and returns what it learned; this takes up to 600 seconds.
        With `fail_open` an optional field that is not valid is left out, and `warnings` names it.
        """
        fields: dict[str, object] = {
            "user_id": user_id,
            "interaction_data_list": interactions,
            "source": source,
            "agent_version": agent_version,
            "session_id": session_id,
            "skip_aggregation": skip_aggregation,
            "force_extraction": force_extraction,
            "evaluation_only": evaluation_only,
            "override_learning_stall": override_learning_stall,
            "retrieval_experiment_id": retrieval_experiment_id,
            "retrieval_experiment_arm": retrieval_experiment_arm,
            "session_finished": session_finished,
        }
        fields, left_out = without_faults(fields) if self._fail_open else (fields, [])
        for warning in left_out:
            log.warning("publishing all the same: %s", warning)
        response = await self._send(
            routes.PUBLISH_AND_LEARN if wait_for_response else routes.PUBLISH,
            headers={"Idempotency-Key": idempotency_key or new_id()},
            **fields,
        )
        named = {"endpoint_url": self.endpoint.url} if response.success else {}
        return response.model_copy(update={**named, "warnings": [*left_out, *response.warnings]})

    async def finalize_session(self, user_id: str, session_id: str) -> FinalizeSessionResponse:
        """Ends a session: learning from its last turns does not wait for more of them."""
        return await self._send(routes.FINALIZE_SESSION, user_id=user_id, session_id=session_id)

    publish_interaction_async = awaitable(publish_interaction)
    finalize_session_async = awaitable(finalize_session)

    async def get_learning_status(self, request_id: str) -> str:
        """The state of learning from a publish: pending, processing, done, failed or not_tracked."""
        return (await self._send(routes.LEARNING_STATUS, request_id=request_id)).status

    async def get_interactions(
        self,
        user_id: str | GetInteractionsRequest | dict[str, Any] | None = None,
        **fields: Unpack[GetInteractionsFields],
    ) -> GetInteractionsResponse:
        """A user's turns, newest first. Pass `next_cursor` of the response as `cursor` to get the next page.

        A whole `request` replaces all other arguments; it may also be the first argument.
        """
        return await self._send(routes.GET_INTERACTIONS, fields, user_id=user_id)

    async def get_all_interactions(self, limit: int = 100, *, cursor: str | None = None) -> GetInteractionsResponse:
        """The turns of all users, newest first."""
        return await self._send(routes.GET_ALL_INTERACTIONS, limit=limit, cursor=cursor)

    async def get_requests(
        self, request: GetRequestsRequest | dict[str, Any] | None = None, **fields: Unpack[GetRequestsFields]
    ) -> GetRequestsResponse:
        """Publishes with their turns, grouped by session, newest first.

        A whole `request` replaces all other arguments.
        """
        return await self._send(routes.GET_REQUESTS, fields, request=request)

    async def delete_interaction(
        self, user_id: str, interaction_id: int, wait_for_response: bool = False
    ) -> DeleteResponse | None:
        """Deletes one turn: in the background, unless `wait_for_response` is true."""
        return await self._delete(
            routes.DELETE_INTERACTION, wait_for_response, user_id=user_id, interaction_id=interaction_id
        )

    async def delete_request(self, request_id: str, wait_for_response: bool = False) -> DeleteResponse | None:
        """Deletes one publish with its turns: in the background, unless `wait_for_response` is true."""
        return await self._delete(routes.DELETE_REQUEST, wait_for_response, request_id=request_id)

    async def delete_session(self, session_id: str, wait_for_response: bool = False) -> DeleteSessionResponse | None:
        """Deletes all publishes of a session: in the background, unless `wait_for_response` is true."""
        return await self._delete(routes.DELETE_SESSION, wait_for_response, session_id=session_id)

    async def delete_requests_by_ids(self, request_ids: Sequence[str]) -> BulkDeleteResponse:
        """Deletes several publishes; unknown ids are ignored."""
        return await self._send(routes.DELETE_REQUESTS, request_ids=list(request_ids))

    async def delete_all_interactions(self) -> BulkDeleteResponse:
        """Deletes all turns and publishes of all users of the organisation; it cannot be undone."""
        return await self._send(routes.DELETE_ALL_INTERACTIONS)

    async def clear_user_data(self, user_id: str, *, withdraw_unsupported: bool = False) -> ClearUserDataResponse:
        """Deletes everything that belongs to one user, which cannot be undone, and returns how much of each kind.

        Agent playbooks stay, without the user's windows; pending ones only if `min_distinct_users` others support them.
        With `withdraw_unsupported` only those stay that enough other users support.
        """
        return await self._send(routes.CLEAR_USER_DATA, user_id=user_id, withdraw_unsupported=withdraw_unsupported)
