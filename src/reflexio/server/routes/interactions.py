"""Interactions: publish, browse, finalise a session, delete."""

from typing import Annotated, Any

from fastapi import Query, Request

from reflexio.errors import InvalidRequest
from reflexio.interactions import browse, erase
from reflexio.interactions import publish as publishing
from reflexio.learning.service import learning_status as read_learning_status
from reflexio.models.access import KeyScope
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
    LearningStatusResponse,
    PublishRequest,
    PublishResponse,
)
from reflexio.models.paging import Cursor
from reflexio.models.wire import Name
from reflexio.server.direct import Router
from reflexio.server.routes import get_reflexio, get_store
from reflexio.server.scopes import needs

router = Router(prefix="/api", tag="interactions")

FLAGS = {
    **dict.fromkeys(("", "false", "0", "no", "off"), False),
    **dict.fromkeys(("true", "1", "yes", "on"), True),
}
# A direct route takes no parameters of FastAPI's: these are documented here and read from the request.
PUBLISH_PARAMETERS: list[dict[str, Any]] = [
    {
        "name": "wait_for_response",
        "in": "query",
        "description": "Learn from exactly these turns before answering, and answer with the outcome.",
        "schema": {"type": "boolean", "default": False},
    },
    {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "A name of your own for this publish.",
        "schema": {"type": "string", "maxLength": 255, "default": ""},
    },
]


@router.direct("POST", "/publish_interaction", KeyScope.PUBLISH, parameters=PUBLISH_PARAMETERS)
async def publish_interaction(request: Request, body: PublishRequest) -> PublishResponse:
    """Stores the turns of one user. They are on disk when the response is sent.

    A repeated `Idempotency-Key` with the same content gets the first response and stores nothing; with other content
    it is a 409. `created_at` of the turns may differ. Keys are remembered for seven days.
    """
    parts = get_reflexio(request)
    key = request.headers.get("idempotency-key", "")
    if len(key) > 255:
        raise InvalidRequest("The Idempotency-Key is longer than 255 characters.")
    wait = request.query_params.get("wait_for_response", "")
    if wait.lower() not in FLAGS:
        raise InvalidRequest(f"wait_for_response is true or false, not {wait[:50]!r}.")
    mine = get_store(request)

    waits = FLAGS[wait.lower()] and not body.evaluation_only
    version = parts.settings.agent_version
    response = await publishing.publish(
        parts.database, mine, parts.clock, body, idempotency_key=key, default_version=version, reserved=waits
    )
    return await parts.learning.learn_publish(mine, body.user_id, response) if waits else response


@router.get("/learning_status", response_model_exclude_none=True, openapi_extra=needs(KeyScope.READ))
async def learning_status(request: Request, request_id: Name) -> LearningStatusResponse:
    """How far learning from one publish has come. A 404 for an unknown request."""
    return await read_learning_status(get_store(request), get_reflexio(request).clock, request_id)


@router.direct("POST", "/finalize_session", KeyScope.PUBLISH)
async def finalize_session(request: Request, body: FinalizeSessionRequest) -> FinalizeSessionResponse:
    """Marks the newest publish of a session as its last one."""
    return await publishing.finalize_session(get_store(request), body.user_id, body.session_id)


@router.direct("POST", "/get_interactions", KeyScope.READ)
async def get_interactions(request: Request, body: GetInteractionsRequest) -> GetInteractionsResponse:
    """A user's turns, newest first."""
    return await browse.interactions(get_store(request), body)


@router.get("/get_all_interactions", response_model_exclude_none=True, openapi_extra=needs(KeyScope.READ))
async def get_all_interactions(
    request: Request, limit: Annotated[int, Query(gt=0)] = 100, cursor: Cursor | None = None
) -> GetInteractionsResponse:
    """The turns of all users of the organisation, newest first."""
    return await browse.all_interactions(get_store(request), limit, cursor)


@router.direct("POST", "/get_requests", KeyScope.READ)
async def get_requests(request: Request, body: GetRequestsRequest) -> GetRequestsResponse:
    """Publishes with their turns, grouped by session, newest first. All given conditions must match."""
    return await browse.requests(get_store(request), body)


@router.direct("DELETE", "/delete_interaction", KeyScope.ADMIN)
async def delete_interaction(request: Request, body: DeleteInteractionRequest) -> DeleteResponse:
    """Deletes one turn. A 404 when the user has no such turn."""
    return await erase.delete_interaction(get_store(request), body.user_id, body.interaction_id)


@router.direct("DELETE", "/delete_request", KeyScope.ADMIN)
async def delete_request(request: Request, body: DeleteRequestRequest) -> DeleteResponse:
    """Deletes one publish with its turns. A 404 for an unknown request."""
    return await erase.delete_request(get_store(request), body.request_id)


@router.direct("DELETE", "/delete_session", KeyScope.ADMIN)
async def delete_session(request: Request, body: DeleteSessionRequest) -> DeleteSessionResponse:
    """Deletes all publishes of a session. An unknown session deletes 0."""
    return await erase.delete_session(get_store(request), body.session_id)


@router.direct("DELETE", "/delete_requests_by_ids", KeyScope.ADMIN)
async def delete_requests_by_ids(request: Request, body: DeleteRequestsByIdsRequest) -> BulkDeleteResponse:
    """Deletes several publishes. Unknown ids are ignored."""
    return await erase.delete_requests(get_store(request), body.request_ids)


@router.delete("/delete_all_interactions", openapi_extra=needs(KeyScope.ADMIN))
async def delete_all_interactions(request: Request) -> BulkDeleteResponse:
    """Deletes all turns and publishes of all users of the organisation; it cannot be undone. The count is of turns."""
    return await erase.delete_all_interactions(get_store(request))


@router.direct("POST", "/clear_user_data", KeyScope.ADMIN)
async def clear_user_data(request: Request, body: ClearUserDataRequest) -> ClearUserDataResponse:
    """Deletes everything of one user, a few rows at a time; it cannot be undone. An unknown user gives zeros.

    After a crash of the server, repeat the call: the receipt counts all that was there. If nobody does, the server goes
    on by itself after a minute.

    Agent playbooks stay, without the user's windows. Pending ones that fewer than `min_distinct_users` users still
    support are archived, and deleted when nobody does; with `withdraw_unsupported`, also all that fewer than
    `min_cluster_size` support. Keep the receipt: `reflexio erasure verify` checks it.
    """
    reflexio = get_reflexio(request)
    response = await erase.delete_user(
        get_store(request),
        reflexio.clock,
        body.user_id,
        reflexio.withdraw_user,
        withdraw_unsupported=body.withdraw_unsupported,
        work=reflexio.work,
    )
    await reflexio.forget_texts()
    return response
