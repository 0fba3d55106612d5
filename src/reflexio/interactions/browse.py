"""Lists stored turns and requests, newest first, page by page."""

from dataclasses import replace

from reflexio.models.interaction import (
    GetInteractionsRequest,
    GetInteractionsResponse,
    GetRequestsRequest,
    GetRequestsResponse,
    Interaction,
    Request,
    RequestData,
    Session,
)
from reflexio.models.paging import MOST, Listing, page
from reflexio.ports.storage import RequestFilter, Store, TimeRange, Tx
from reflexio.retrieval.filters import time_range


async def interactions(store: Store, request: GetInteractionsRequest) -> GetInteractionsResponse:
    within = time_range(request.start_time, request.end_time)
    wanted_page = page(request.top_k or MOST, request.cursor)
    return _response(await store.read(lambda tx: tx.interactions.page(request.user_id, within, wanted_page)))


async def all_interactions(store: Store, limit: int, cursor: str | None) -> GetInteractionsResponse:
    wanted_page = page(limit, cursor)
    return _response(await store.read(lambda tx: tx.interactions.page(None, TimeRange(), wanted_page)))


def _response(listing: Listing[Interaction]) -> GetInteractionsResponse:
    return GetInteractionsResponse.model_construct(
        interactions=listing.rows, msg=f"Found {len(listing.rows)} interaction(s)", next_cursor=listing.cursor
    )


async def requests(store: Store, request: GetRequestsRequest) -> GetRequestsResponse:
    where = RequestFilter(
        user_id=request.user_id,
        request_id=request.request_id,
        session_id=request.session_id,
        source=request.source,
        within=time_range(request.start_time, request.end_time),
    )
    wanted_page = page(request.top_k or MOST, request.cursor)

    def read(tx: Tx) -> tuple[Listing[Request], list[Interaction]]:
        offset = request.offset or 0
        listing = tx.requests.page(where, wanted_page, offset=offset)
        ids = [row.request_id for row in listing.rows]
        turns, fitting = tx.interactions.of_first_requests(ids, wanted_page.most_bytes)
        if fitting < len(ids):
            listing = tx.requests.page(where, replace(wanted_page, limit=fitting), offset=offset)
        return listing, turns

    listing, turns = await store.read(read)
    return GetRequestsResponse.model_construct(
        sessions=_by_session(listing.rows, turns),
        has_more=listing.end is not None,
        msg=f"Found {len(listing.rows)} request(s)",
        next_cursor=listing.cursor,
    )


def _by_session(requests: list[Request], turns: list[Interaction]) -> list[Session]:
    by_request: dict[str, list[Interaction]] = {}
    for turn in turns:
        by_request.setdefault(turn.request_id, []).append(turn)
    sessions: dict[str, list[RequestData]] = {}
    for request in requests:
        data = RequestData.model_construct(request=request, interactions=by_request.get(request.request_id, []))
        sessions.setdefault(request.session_id, []).append(data)
    return [Session.model_construct(session_id=session_id, requests=rows) for session_id, rows in sessions.items()]
