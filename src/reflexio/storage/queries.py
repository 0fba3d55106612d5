"""What the statements of several tables share: rows of one organisation, pages, upserts, long lists of ids."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import orjson
from sqlalchemy import (
    BigInteger,
    BindParameter,
    Column,
    ColumnElement,
    Connection,
    Delete,
    Select,
    Table,
    Text,
    Update,
    func,
    literal,
    select,
    tuple_,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from reflexio.models.paging import Listing, Page, Position
from reflexio.ports.storage import Days, TimeRange

if TYPE_CHECKING:
    from sqlalchemy.dialects.sqlite import Insert

T = TypeVar("T")
R = TypeVar("R", bound=Sequence[Any])
DAY_SECONDS = 86_400
BYTES_OF_NAMES = 800
"""The names of a row's fields in JSON, at most."""


class OrganisationRows:
    """Reads and writes the rows of one organisation in one transaction."""

    def __init__(self, connection: Connection, org_id: str) -> None:
        self._connection = connection
        self._org = org_id

    def _one(self, query: Select[Any], read: Callable[[Any], T]) -> T | None:
        row = self._connection.execute(query).one_or_none()
        return None if row is None else read(row)

    def _rows(self, query: Select[Any], read: Callable[[Any], T]) -> list[T]:
        return [read(row) for row in self._connection.execute(query)]

    def _scalars(self, query: Select[Any]) -> list[Any]:
        return list(self._connection.execute(query).scalars())

    def _count(self, table: Table, *where: ColumnElement[bool]) -> int:
        return int(self._connection.execute(select(func.count()).select_from(table).where(*where)).scalar_one())

    def _count_by_day(self, table: Table, days: Days, *where: ColumnElement[bool]) -> dict[int, int]:
        """Rows by the day of their `created_at`. Counting the range of each day in an index takes a fifth of the time
        that grouping its rows by day takes."""
        first = select(literal(days.first, BigInteger).label("day")).cte("days", recursive=True)
        counted = first.union_all(select(first.c.day + 1).where(first.c.day < days.last))
        start, second = counted.c.day * DAY_SECONDS, table.c.created_at
        own = table.c.org_id == self._org, second >= start, second < start + DAY_SECONDS
        count = select(func.count()).select_from(table).where(*own, *where).correlate(counted).scalar_subquery()
        rows = self._connection.execute(select(counted.c.day, count))
        return {int(day): number for day, number in rows if number}

    def _change(self, statement: Update | Delete) -> int:
        """Runs a statement and returns how many rows it changed."""
        return self._connection.execute(statement).rowcount

    def _page(self, query: Select[Any], table: Table, page: Page, read: Callable[[Any], T]) -> Listing[T]:
        """One page, newest first, of a query that selects `id` and `created_at` among others."""
        if page.after is not None:
            query = query.where(tuple_(table.c.created_at, table.c.id) < tuple_(page.after.at, page.after.id))
        newest = query.order_by(table.c.created_at.desc(), table.c.id.desc()).limit(page.limit + 1)
        # Read one by one: rows behind the end of the page are never held.
        with self._connection.execute(newest) as rows:
            shown, has_more = fitting(rows, page.limit, page.most_bytes)
        end = Position(shown[-1].created_at, shown[-1].id) if has_more and shown else None
        return Listing([read(row) for row in shown], end)


def fitting(rows: Iterable[R], most: int, most_bytes: int) -> tuple[list[R], bool]:
    """The first rows within both limits, always at least one, and whether others follow."""
    shown: list[R] = []
    room = most_bytes
    for row in rows:
        room -= written_bytes(row)
        if shown and (len(shown) >= most or room < 0):
            return shown, True
        shown.append(row)
    return shown, False


def within_letters(rows: Iterable[Sequence[Any]], most: int) -> list[Sequence[Any]]:
    """The first rows whose lengths, in their second column, add up to so many letters; always at least one."""
    shown: list[Sequence[Any]] = []
    for row in rows:
        most -= row[1]
        if shown and most < 0:
            break
        shown.append(row)
    return shown


def written_bytes(row: Sequence[Any]) -> int:
    """How long a row is as JSON, with its names."""
    return BYTES_OF_NAMES + len(orjson.dumps(list(row), default=str))


def in_time_range(column: Any, within: TimeRange) -> list[ColumnElement[bool]]:
    start = [] if within.start is None else [column >= within.start]
    return start if within.end is None else [*start, column <= within.end]


def equal(table: Table, values: Any, names: Iterable[str]) -> list[ColumnElement[bool]]:
    """Compares the columns `names` with the attributes of the same names in `values`, unless these are None."""
    return [table.c[name] == value for name in names if (value := getattr(values, name)) is not None]


def attributes(value: Any, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}


def in_batches(ids: Sequence[T], size: int = 8_192) -> Iterator[Sequence[T]]:
    """Ids in batches that one statement can take: a stock SQLite binds 32,766 values, PostgreSQL 65,535."""
    for start in range(0, len(ids), size):
        yield ids[start : start + size]


def owned_by(column: ColumnElement[str], org_id: str | BindParameter[str]) -> ColumnElement[bool]:
    """The organisation of rows that are looked up by their ids.

    SQLite prefers an index of all rows of an organisation to looking up a few ids. The function call hides the column
    from that index.
    """
    return func.coalesce(column, "") == org_id


class json_field(FunctionElement[str]):  # noqa: N801  (it reads like func.name in a statement)
    """A text inside a column of JSON, by its path: `json_field(jobs.c.data, "scope.user_id")`."""

    inherit_cache = True
    type = Text()


@compiles(json_field)
def _json_extract(element: json_field, compiler: Any, **options: Any) -> str:
    column, path = (compiler.process(clause, **options) for clause in element.clauses)
    return f"json_extract({column}, '$.' || {path})"


@compiles(json_field, "postgresql")
def _json_by_path(element: json_field, compiler: Any, **options: Any) -> str:
    column, path = (compiler.process(clause, **options) for clause in element.clauses)
    return f"(CAST(NULLIF({column}, '') AS json) #>> string_to_array({path}, '.'))"


def organisations_with(
    connection: Connection, column: Column[str], condition: ColumnElement[bool], limit: int, after: str = ""
) -> list[str]:
    """The organisations of rows that meet a condition, by name: those behind `after` first, then the others.

    Asks for one after the other. With an index that begins with what the condition compares and the organisation, this
    reads one row of each, however many it has.
    """
    names: list[str] = []
    for is_behind in (True, False):
        last = after if is_behind else ""
        while len(names) < limit:
            query = select(func.min(column)).where(condition, column > last)
            name = connection.execute(query).scalar()
            if name is None or (not is_behind and name > after):
                break
            names.append(name)
            last = name
    return names


def insert_for(dialect: str) -> "Callable[[Table], Insert]":
    """The dialect's INSERT, which knows conflicts. Only the dialect in use is imported, to keep the start fast."""
    insert: Callable[[Table], Insert] = import_module(f"sqlalchemy.dialects.{dialect}").insert
    return insert


def upsert(connection: Connection, table: Table, row: dict[str, Any]) -> None:
    """Stores `row` under its primary key; an existing row takes all its values."""
    primary = [column.name for column in table.primary_key]
    statement = insert_for(connection.dialect.name)(table)
    changed = {name: statement.excluded[name] for name in row if name not in primary}
    connection.execute(statement.on_conflict_do_update(index_elements=primary, set_=changed), row)
