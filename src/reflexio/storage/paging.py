"""Reading a table page by page, newest first."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from sqlalchemy import BindParameter, ColumnElement, Connection, Select, Table, func, tuple_

from reflexio.models.paging import Listing, Page, Position
from reflexio.ports.storage import TimeRange

T = TypeVar("T")


def during(column: Any, within: TimeRange) -> list[ColumnElement[bool]]:
    ends: list[ColumnElement[bool]] = []
    if within.start is not None:
        ends.append(column >= within.start)
    if within.end is not None:
        ends.append(column <= within.end)
    return ends


def in_parts(ids: Sequence[T], size: int = 8_192) -> Iterator[Sequence[T]]:
    """Ids in parts that one statement can take: a stock SQLite binds 32,766 values, PostgreSQL 65,535."""
    for start in range(0, len(ids), size):
        yield ids[start : start + size]


def owned(column: ColumnElement[str], org_id: str | BindParameter[str]) -> ColumnElement[bool]:
    """The organisation of rows that are looked up by ids. SQLite would rather walk through all rows of one than look
    up a few ids, if it could; written so, it cannot."""
    return func.coalesce(column, "") == org_id


def listing(
    connection: Connection, query: Select[Any], table: Table, page: Page, read: Callable[[Any], T]
) -> Listing[T]:
    """Runs `query`, which selects `id` and `created_at` among others, for one page."""
    if page.after is not None:
        seen = tuple_(page.after.at, page.after.id)
        query = query.where(tuple_(table.c.created_at, table.c.id) < seen)
    newest = query.order_by(table.c.created_at.desc(), table.c.id.desc()).limit(page.limit + 1)
    rows = connection.execute(newest).all()
    shown = rows[: page.limit]
    end = Position(shown[-1].created_at, shown[-1].id) if len(rows) > page.limit else None
    return Listing([read(row) for row in shown], end)
