"""Requests: one row for each publish."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from reflexio.errors import Conflict
from reflexio.models.interaction import Request
from reflexio.models.paging import Listing, Page
from reflexio.ports.storage import RequestFilter
from reflexio.storage.hot import Hot
from reflexio.storage.interactions import SqlInteractions
from reflexio.storage.paging import during, listing
from reflexio.storage.schema import interactions, requests

FIELDS = list(Request.model_fields)
COLUMNS = [requests.c.id, *(requests.c[name] for name in FIELDS)]


def _read(row: Any) -> Request:
    _, *values = row
    return Request.model_validate(dict(zip(FIELDS, values, strict=True)))


ADD = Hot(lambda _: insert(requests), ["org_id", *FIELDS])


class SqlRequests:
    def __init__(self, connection: Connection, org_id: str, turns: SqlInteractions) -> None:
        self._connection = connection
        self._org = org_id
        self._turns = turns

    def _where(self, where: RequestFilter) -> ColumnElement[bool]:
        wanted = {
            requests.c.user_id: where.user_id,
            requests.c.request_id: where.request_id,
            requests.c.session_id: where.session_id,
            requests.c.source: where.source,
        }
        given = [column == value for column, value in wanted.items() if value is not None]
        return and_(requests.c.org_id == self._org, *given, *during(requests.c.created_at, where.within))

    def add(self, request: Request) -> None:
        try:
            ADD.run(self._connection, [{"org_id": self._org, **dict(request)}])
        except IntegrityError:
            raise Conflict(f"The request id {request.request_id!r} is taken; leave it out to get a new one.") from None

    def get(self, request_id: str) -> Request | None:
        row = self._connection.execute(
            select(*COLUMNS).where(self._where(RequestFilter(request_id=request_id)))
        ).one_or_none()
        return _read(row) if row else None

    def page(self, where: RequestFilter, page: Page, *, offset: int = 0) -> Listing[Request]:
        query = select(*COLUMNS).where(self._where(where)).offset(offset)
        return listing(self._connection, query, requests, page, _read)

    def finish(self, user_id: str, session_id: str) -> bool:
        last = select(func.max(requests.c.id)).where(self._where(RequestFilter(user_id, session_id=session_id)))
        done = self._connection.execute(
            update(requests)
            .where(requests.c.id == last.scalar_subquery(), requests.c.org_id == self._org)
            .values(session_finished=True)
        )
        return done.rowcount > 0

    def remove(self, where: RequestFilter) -> int:
        return self._remove(self._where(where))

    def remove_ids(self, request_ids: Sequence[str]) -> int:
        return self._remove(and_(requests.c.org_id == self._org, requests.c.request_id.in_(request_ids)))

    def _remove(self, which: ColumnElement[bool]) -> int:
        turns = interactions.c.request_id.in_(select(requests.c.request_id).where(which))
        self._turns.remove_where(interactions.c.org_id == self._org, turns)
        return self._connection.execute(delete(requests).where(which)).rowcount

    def count(self, user_id: str | None = None) -> int:
        query = select(func.count()).select_from(requests).where(self._where(RequestFilter(user_id)))
        return int(self._connection.execute(query).scalar_one())
