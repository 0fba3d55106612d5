"""Publishing, browsing and deleting what was said and done."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from reflexio.errors import InvalidRequest
from reflexio.interactions import browse, erase
from reflexio.interactions import publish as publishing
from reflexio.learning.service import learning_status as read_learning_status
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
from reflexio.models.shape import Name
from reflexio.server.body import JsonRoute
from reflexio.server.parts import house, store

router = APIRouter(prefix="/api", tags=["interactions"], route_class=JsonRoute)


FLAGS = {
    "": False,
    "false": False,
    "0": False,
    "no": False,
    "off": False,
    "true": True,
    "1": True,
    "yes": True,
    "on": True,
}

# Read by hand from the request, so that the busiest route stays a plain one.
PUBLISH_PARAMETERS: list[dict[str, Any]] = [
    {
        "name": "wait_for_response",
        "in": "query",
        "description": "Learns from exactly these turns and answers with what came of it.",
        "schema": {"type": "boolean", "default": False},
    },
    {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "A name of your own for this publish.",
        "schema": {"type": "string", "maxLength": 255, "default": ""},
    },
]


@router.post("/publish_interaction", response_model_exclude_none=True, openapi_extra={"parameters": PUBLISH_PARAMETERS})
async def publish_interaction(request: Request, wanted: PublishRequest) -> PublishResponse:
    """Stores the turns of one user. When it answers, they are on disk.

    The same `Idempotency-Key` with the same content gets the first answer and stores nothing; with other content
    it is a 409. `created_at` of the turns may differ. Keys are remembered for seven days.
    """
    parts = house(request)
    key = request.headers.get("idempotency-key", "")
    if len(key) > 255:
        raise InvalidRequest("The Idempotency-Key is longer than 255 characters.")
    mine = store(request)

    async def stored() -> PublishResponse:
        version = parts.settings.agent_version
        return await publishing.publish(
            parts.database, mine, parts.clock, wanted, idempotency_key=key, default_version=version
        )

    if not _is_awaited(request) or wanted.evaluation_only:
        return await stored()
    with parts.learning_scheduler.reserve(mine.org_id, wanted.user_id):
        return await parts.learning.learn_publish(mine, wanted.user_id, await stored())


def _is_awaited(request: Request) -> bool:
    given = request.query_params.get("wait_for_response", "")
    if given.lower() not in FLAGS:
        raise InvalidRequest(f"wait_for_response is true or false, not {given[:50]!r}.")
    return FLAGS[given.lower()]


@router.get("/learning_status", response_model_exclude_none=True)
async def learning_status(request: Request, request_id: Name) -> LearningStatusResponse:
    """How far learning from a publish has come. A 404 when there is no such request."""
    return await read_learning_status(store(request), house(request).clock, request_id)


@router.post("/finalize_session", response_model_exclude_none=True)
async def finalize_session(request: Request, wanted: FinalizeSessionRequest) -> FinalizeSessionResponse:
    """Marks the newest publish of a session as its last one."""
    return await publishing.finalize_session(store(request), wanted.user_id, wanted.session_id)


@router.post("/get_interactions", response_model_exclude_none=True)
async def get_interactions(request: Request, asked: GetInteractionsRequest) -> GetInteractionsResponse:
    """A user's turns, newest first."""
    return await browse.interactions(store(request), asked)


@router.get("/get_all_interactions", response_model_exclude_none=True)
async def get_all_interactions(
    request: Request, limit: Annotated[int, Query(gt=0)] = 100, cursor: Cursor | None = None
) -> GetInteractionsResponse:
    """Everybody's turns in the organisation, newest first."""
    return await browse.all_interactions(store(request), limit, cursor)


@router.post("/get_requests", response_model_exclude_none=True)
async def get_requests(request: Request, asked: GetRequestsRequest) -> GetRequestsResponse:
    """Publishes with their turns, grouped by session, newest first. All conditions hold together."""
    return await browse.requests(store(request), asked)


@router.delete("/delete_interaction")
async def delete_interaction(request: Request, which: DeleteInteractionRequest) -> DeleteResponse:
    """Deletes one turn. A 404 when the user has no such turn."""
    return await erase.interaction(store(request), which.user_id, which.interaction_id)


@router.delete("/delete_request")
async def delete_request(request: Request, which: DeleteRequestRequest) -> DeleteResponse:
    """Deletes one publish with its turns. A 404 when there is no such request."""
    return await erase.request(store(request), which.request_id)


@router.delete("/delete_session")
async def delete_session(request: Request, which: DeleteSessionRequest) -> DeleteSessionResponse:
    """Deletes all publishes of a session; an unknown one deletes 0."""
    return await erase.session(store(request), which.session_id)


@router.delete("/delete_requests_by_ids")
async def delete_requests_by_ids(request: Request, which: DeleteRequestsByIdsRequest) -> BulkDeleteResponse:
    """Deletes several publishes; unknown ids are passed over."""
    return await erase.requests(store(request), which.request_ids)


@router.delete("/delete_all_interactions")
async def delete_all_interactions(request: Request) -> BulkDeleteResponse:
    """Deletes all turns and publishes of the organisation, and counts the turns."""
    return await erase.all_interactions(store(request))


@router.post("/clear_user_data")
async def clear_user_data(request: Request, which: ClearUserDataRequest) -> ClearUserDataResponse:
    """Deletes everything that belongs to one user, in one transaction; an unknown user gives zeros.

    Agent playbooks stay, without the user's windows. With `withdraw_unsupported` those are archived that fewer users
    than `min_cluster_size` still stand behind.
    """
    return await erase.user(
        store(request),
        house(request).clock,
        which.user_id,
        house(request).withdraw_user,
        withdraw_unsupported=which.withdraw_unsupported,
    )
