"""Publishing, browsing and deleting what was said and done."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from reflexio.errors import InvalidRequest
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
from reflexio.usecases import browse, erase
from reflexio.usecases import publish as publishing

router = APIRouter(prefix="/api", tags=["interactions"], route_class=JsonRoute)


# Read by hand from the request, so that the busiest route stays a plain one.
PUBLISH_PARAMETERS: list[dict[str, Any]] = [
    {
        "name": "wait_for_response",
        "in": "query",
        "description": "Also wait until these turns have been learned from.",
        "schema": {"type": "boolean", "default": False},
    },
    {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "The same key and body store only once; a repetition gets the first answer.",
        "schema": {"type": "string", "maxLength": 255, "default": ""},
    },
]


@router.post("/publish_interaction", response_model_exclude_none=True, openapi_extra={"parameters": PUBLISH_PARAMETERS})
async def publish_interaction(request: Request, wanted: PublishRequest) -> PublishResponse:
    parts = house(request)
    key = request.headers.get("idempotency-key", "")
    if len(key) > 255:
        raise InvalidRequest("The Idempotency-Key is longer than 255 characters.")
    return await publishing.publish(
        parts.database,
        store(request),
        parts.clock,
        wanted,
        idempotency_key=key,
        default_version=parts.settings.agent_version,
    )


@router.get("/learning_status", response_model_exclude_none=True)
async def learning_status(request: Request, request_id: Name) -> LearningStatusResponse:
    return await publishing.learning_status(store(request), request_id)


@router.post("/finalize_session", response_model_exclude_none=True)
async def finalize_session(request: Request, wanted: FinalizeSessionRequest) -> FinalizeSessionResponse:
    return await publishing.finalize_session(store(request), wanted.user_id, wanted.session_id)


@router.post("/get_interactions", response_model_exclude_none=True)
async def get_interactions(request: Request, asked: GetInteractionsRequest) -> GetInteractionsResponse:
    return await browse.interactions(store(request), asked)


@router.get("/get_all_interactions", response_model_exclude_none=True)
async def get_all_interactions(
    request: Request, limit: Annotated[int, Query(gt=0)] = 100, cursor: Cursor | None = None
) -> GetInteractionsResponse:
    return await browse.all_interactions(store(request), limit, cursor)


@router.post("/get_requests", response_model_exclude_none=True)
async def get_requests(request: Request, asked: GetRequestsRequest) -> GetRequestsResponse:
    return await browse.requests(store(request), asked)


@router.delete("/delete_interaction")
async def delete_interaction(request: Request, which: DeleteInteractionRequest) -> DeleteResponse:
    return await erase.interaction(store(request), which.user_id, which.interaction_id)


@router.delete("/delete_request")
async def delete_request(request: Request, which: DeleteRequestRequest) -> DeleteResponse:
    return await erase.request(store(request), which.request_id)


@router.delete("/delete_session")
async def delete_session(request: Request, which: DeleteSessionRequest) -> DeleteSessionResponse:
    return await erase.session(store(request), which.session_id)


@router.delete("/delete_requests_by_ids")
async def delete_requests_by_ids(request: Request, which: DeleteRequestsByIdsRequest) -> BulkDeleteResponse:
    return await erase.requests(store(request), which.request_ids)


@router.delete("/delete_all_interactions")
async def delete_all_interactions(request: Request) -> BulkDeleteResponse:
    return await erase.all_interactions(store(request))


@router.post("/clear_user_data")
async def clear_user_data(request: Request, which: ClearUserDataRequest) -> ClearUserDataResponse:
    return await erase.user(store(request), which.user_id)
