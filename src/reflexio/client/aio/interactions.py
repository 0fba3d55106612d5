"""Publishing, browsing and deleting what was said and done."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from reflexio.client.aio.calls import Calls, zoned
from reflexio.client.answers import asked, build
from reflexio.client.twins import awaited
from reflexio.models.identity import new_id
from reflexio.models.interaction import (
    BulkDeleteResponse,
    ClearUserDataRequest,
    ClearUserDataResponse,
    DeleteInteractionRequest,
    DeleteRequestRequest,
    DeleteRequestsByIdsRequest,
    DeleteResponse,
    DeleteSessionRequest,
    DeleteSessionResponse,
    FinalizeSessionRequest,
    FinalizeSessionResponse,
    GetInteractionsRequest,
    GetInteractionsResponse,
    GetRequestsRequest,
    GetRequestsResponse,
    InteractionData,
    LearningStatusResponse,
    PublishRequest,
    PublishResponse,
)

LEARNED = ("profiles", "agent_playbooks")
"""Topics of the cache that learning changes, some time after it was asked for."""


class InteractionCalls(Calls):
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
        """Stores turns of a conversation. When this returns they are on disk.

        Without `session_id` one is made and returned. The same `idempotency_key` stores only once; each call has one
        of its own, so that repeating it on a bad connection is safe. `wait_for_response` learns from exactly these
        turns first and answers with what came of it; it waits up to 600 seconds.
        """
        key = idempotency_key or new_id()

        async def call() -> PublishResponse:
            wanted = build(
                PublishRequest,
                {
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
                },
            )
            done = await self._call(
                "POST",
                "/api/publish_interaction",
                PublishResponse,
                wanted,
                params={"wait_for_response": "true" if wait_for_response else None},
                headers={"Idempotency-Key": key},
                waited=wait_for_response,
            )
            return done.model_copy(update={"endpoint_url": self.endpoint.url})

        self._cache.doubt(*LEARNED)
        answer = await self._gently(call, PublishResponse)
        self._cache.doubt(*LEARNED)
        return answer

    async def finalize_session(self, user_id: str, session_id: str) -> FinalizeSessionResponse:
        """Says that a session is over, so that its last turns need not wait for more."""

        async def call() -> FinalizeSessionResponse:
            wanted = build(FinalizeSessionRequest, {"user_id": user_id, "session_id": session_id})
            return await self._call("POST", "/api/finalize_session", FinalizeSessionResponse, wanted)

        self._cache.doubt(*LEARNED)
        answer = await self._gently(call, FinalizeSessionResponse)
        self._cache.doubt(*LEARNED)
        return answer

    publish_interaction_async = awaited(publish_interaction)
    finalize_session_async = awaited(finalize_session)

    async def get_learning_status(self, request_id: str) -> str:
        """How far learning from a publish has come: pending, processing, done, failed or not_tracked."""
        params = {"request_id": request_id}
        answer = await self._call("GET", "/api/learning_status", LearningStatusResponse, params=params)
        return answer.status

    async def get_interactions(
        self,
        user_id: str | GetInteractionsRequest | dict[str, Any] | None = None,
        *,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        top_k: int | None = None,
        cursor: str | None = None,
        request: GetInteractionsRequest | dict[str, Any] | None = None,
    ) -> GetInteractionsResponse:
        """A user's turns, newest first. `next_cursor` of the answer leads to the page after it.

        A whole `request` may stand in the place of all else, also as the first argument.
        """
        whole = user_id if isinstance(user_id, GetInteractionsRequest | dict) else request

        async def call() -> GetInteractionsResponse:
            wanted = asked(
                GetInteractionsRequest,
                whole,
                {
                    "user_id": user_id,
                    "start_time": zoned(start_time),
                    "end_time": zoned(end_time),
                    "top_k": top_k,
                    "cursor": cursor,
                },
            )
            return await self._call("POST", "/api/get_interactions", GetInteractionsResponse, wanted)

        return await self._gently(call, GetInteractionsResponse)

    async def get_all_interactions(self, limit: int = 100, *, cursor: str | None = None) -> GetInteractionsResponse:
        """Everybody's turns, newest first."""

        async def call() -> GetInteractionsResponse:
            params = {"limit": limit, "cursor": cursor}
            return await self._call("GET", "/api/get_all_interactions", GetInteractionsResponse, params=params)

        return await self._gently(call, GetInteractionsResponse)

    async def get_requests(
        self,
        request: GetRequestsRequest | dict[str, Any] | None = None,
        *,
        user_id: str | None = None,
        request_id: str | None = None,
        session_id: str | None = None,
        source: str | None = None,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        top_k: int | None = None,
        offset: int | None = None,
        cursor: str | None = None,
    ) -> GetRequestsResponse:
        """Publishes with their turns, grouped by session, newest first.

        A whole `request` may stand in the place of all else.
        """

        async def call() -> GetRequestsResponse:
            wanted = asked(
                GetRequestsRequest,
                request,
                {
                    "user_id": user_id,
                    "request_id": request_id,
                    "session_id": session_id,
                    "source": source,
                    "start_time": zoned(start_time),
                    "end_time": zoned(end_time),
                    "top_k": top_k,
                    "offset": offset,
                    "cursor": cursor,
                },
            )
            return await self._call("POST", "/api/get_requests", GetRequestsResponse, wanted)

        return await self._gently(call, GetRequestsResponse)

    async def delete_interaction(
        self, user_id: str, interaction_id: int, wait_for_response: bool = False
    ) -> DeleteResponse | None:
        """Deletes one turn: in the background, unless `wait_for_response` is true."""
        which = build(DeleteInteractionRequest, {"user_id": user_id, "interaction_id": interaction_id})
        return await self._delete("/api/delete_interaction", DeleteResponse, which, wait=wait_for_response)

    async def delete_request(self, request_id: str, wait_for_response: bool = False) -> DeleteResponse | None:
        """Deletes one publish with its turns: in the background, unless `wait_for_response` is true."""
        which = build(DeleteRequestRequest, {"request_id": request_id})
        return await self._delete("/api/delete_request", DeleteResponse, which, wait=wait_for_response)

    async def delete_session(self, session_id: str, wait_for_response: bool = False) -> DeleteSessionResponse | None:
        """Deletes all publishes of a session: in the background, unless `wait_for_response` is true."""
        which = build(DeleteSessionRequest, {"session_id": session_id})
        return await self._delete("/api/delete_session", DeleteSessionResponse, which, wait=wait_for_response)

    async def delete_requests_by_ids(self, request_ids: Sequence[str]) -> BulkDeleteResponse:
        """Deletes several publishes; unknown ids are passed over."""
        which = build(DeleteRequestsByIdsRequest, {"request_ids": list(request_ids)})
        return await self._delete_many("/api/delete_requests_by_ids", which, ())

    async def delete_all_interactions(self) -> BulkDeleteResponse:
        """Deletes all turns and publishes of the organisation."""
        return await self._delete_many("/api/delete_all_interactions", None, LEARNED)

    async def clear_user_data(self, user_id: str, *, withdraw_unsupported: bool = False) -> ClearUserDataResponse:
        """Deletes everything that belongs to one user, and tells how much of each kind that was.

        Agent playbooks stay, without the user's windows; with `withdraw_unsupported` only those stay that enough
        others stand behind.
        """
        which = build(ClearUserDataRequest, {"user_id": user_id, "withdraw_unsupported": withdraw_unsupported})
        done = await self._call("POST", "/api/clear_user_data", ClearUserDataResponse, which)
        self._cache.forget(*LEARNED)
        return done
