"""Browse: stored turns and requests, newest first, page by page."""

from datetime import datetime

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


def time_range(start: datetime | None, end: datetime | None) -> TimeRange:
    return TimeRange(int(start.timestamp()) if start else None, int(end.timestamp()) if end else None)


async def interactions(store: Store, asked: GetInteractionsRequest) -> GetInteractionsResponse:
    within = time_range(asked.start_time, asked.end_time)
    here = page(asked.top_k or MOST, asked.cursor)
    return _turns(await store.read(lambda tx: tx.interactions.page(asked.user_id, within, here)))


async def all_interactions(store: Store, limit: int, cursor: str | None) -> GetInteractionsResponse:
    here = page(limit, cursor)
    return _turns(await store.read(lambda tx: tx.interactions.page(None, TimeRange(), here)))


def _turns(found: Listing[Interaction]) -> GetInteractionsResponse:
    return GetInteractionsResponse.model_construct(
        interactions=found.rows, msg=f"Found {len(found.rows)} interaction(s)", next_cursor=found.cursor
    )


async def requests(store: Store, asked: GetRequestsRequest) -> GetRequestsResponse:
    where = RequestFilter(
        user_id=asked.user_id,
        request_id=asked.request_id,
        session_id=asked.session_id,
        source=asked.source,
        within=time_range(asked.start_time, asked.end_time),
    )
    here = page(asked.top_k or MOST, asked.cursor)

    def look(tx: Tx) -> tuple[Listing[Request], list[Interaction]]:
        found = tx.requests.page(where, here, offset=asked.offset or 0)
        return found, tx.interactions.of_requests([each.request_id for each in found.rows])

    found, turns = await store.read(look)
    return GetRequestsResponse.model_construct(
        sessions=_by_session(found.rows, turns),
        has_more=found.end is not None,
        msg=f"Found {len(found.rows)} request(s)",
        next_cursor=found.cursor,
    )


def _by_session(found: list[Request], turns: list[Interaction]) -> list[Session]:
    said: dict[str, list[Interaction]] = {}
    for turn in turns:
        said.setdefault(turn.request_id, []).append(turn)
    sessions: dict[str, list[RequestData]] = {}
    for request in found:
        data = RequestData.model_construct(request=request, interactions=said.get(request.request_id, []))
        sessions.setdefault(request.session_id, []).append(data)
    return [Session.model_construct(session_id=each, requests=rows) for each, rows in sessions.items()]
