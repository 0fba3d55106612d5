"""Statements that every publish or search runs: compiled once, because building them costs more than running them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Boolean, Connection, Insert, Select
from sqlalchemy.exc import DBAPIError

Row = dict[str, Any]
Process = Callable[[Any], Any]


class Hot:
    """An INSERT that is built for a dialect at its first use, and from then on given straight to the driver."""

    def __init__(self, build: Callable[[str], Insert], columns: Sequence[str]) -> None:
        self._build = build
        self._columns = columns
        self._made: dict[str, tuple[str, list[str] | None, dict[str, Process]]] = {}

    def run(self, connection: Connection, rows: Sequence[Row]) -> int:
        """How many rows it wrote."""
        name = connection.dialect.name
        if name not in self._made:
            self._made[name] = self._compiled(connection)
        sql, order, prepare = self._made[name]
        for row in rows:
            for column, made in prepare.items():
                row[column] = made(row[column])
        values: list[Any] = list(rows) if order is None else [tuple([row[column] for column in order]) for row in rows]
        cursor = connection.connection.cursor()
        try:
            cursor.executemany(sql, values)
            return cursor.rowcount
        except connection.dialect.loaded_dbapi.Error as fault:
            raise DBAPIError.instance(sql, None, fault, connection.dialect.loaded_dbapi.Error) from fault
        finally:
            cursor.close()

    def _compiled(self, connection: Connection) -> tuple[str, list[str] | None, dict[str, Process]]:
        compiled: Any = self._build(connection.dialect.name).compile(
            dialect=connection.dialect, column_keys=list(self._columns)
        )
        kinds = {bind.key: bind.type.dialect_impl(connection.dialect) for bind in compiled.binds.values()}
        # Drivers know what to do with a truth value.
        made = {
            key: kind.bind_processor(connection.dialect) for key, kind in kinds.items() if not isinstance(kind, Boolean)
        }
        prepare = {key: process for key, process in made.items() if process is not None}
        return str(compiled), compiled.positiontup, prepare


class Look:
    """A SELECT that is built at its first use, and from then on handed straight to the driver. Rows come as tuples.

    A list among the values is filled up with its last entry to a power of two, so that a few statements serve lists
    of any length.
    """

    def __init__(self, query: Select[Any]) -> None:
        self._query = query
        self._made: dict[tuple[Any, ...], _Made] = {}

    def rows(self, connection: Connection, values: Row) -> list[tuple[Any, ...]]:
        given = {name: _filled_up(value) if isinstance(value, list) else value for name, value in values.items()}
        lengths = [len(value) for value in given.values() if isinstance(value, list)]
        key = (connection.dialect.name, *lengths)
        if key not in self._made:
            self._made[key] = _Made.of(self._query, connection, given)
        return self._made[key].rows(connection, given)


@dataclass(frozen=True, slots=True)
class _Made:
    """A statement for one dialect and lists of one length; how to read those columns that need it."""

    sql: str
    order: Sequence[str] | None
    constants: Row
    readers: list[tuple[int, Callable[[Any], Any]]]

    @classmethod
    def of(cls, query: Select[Any], connection: Connection, values: Row) -> "_Made":
        dialect = connection.dialect
        made: Any = query.compile(dialect=dialect).construct_expanded_state(values)
        constants = {name: value for name, value in made.parameters.items() if name not in _spread(values)}
        kinds = [column.type.dialect_impl(dialect) for column in query.selected_columns]
        readers = [(place, kind.result_processor(dialect, None)) for place, kind in enumerate(kinds)]
        return cls(made.statement, made.positiontup, constants, [(place, read) for place, read in readers if read])

    def rows(self, connection: Connection, values: Row) -> list[tuple[Any, ...]]:
        given = {**self.constants, **_spread(values)}
        parameters = given if self.order is None else [given[name] for name in self.order]
        rows: list[tuple[Any, ...]] = driver(connection).execute(self.sql, parameters).fetchall()
        return [self._read(row) for row in rows] if self.readers else rows

    def _read(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        values = list(row)
        for place, read in self.readers:
            values[place] = read(values[place])
        return tuple(values)


def driver(connection: Connection) -> Any:
    """The driver's own connection, for statements that are run so often that what is around them counts."""
    return connection.connection.driver_connection


def _filled_up(values: list[Any]) -> list[Any]:
    return values + values[-1:] * ((1 << (len(values) - 1).bit_length()) - len(values)) if values else values


def _spread(values: Row) -> Row:
    """A list under the names that SQLAlchemy gives to its entries."""
    spread: Row = {}
    for name, value in values.items():
        if isinstance(value, list):
            spread |= {f"{name}_{number}": each for number, each in enumerate(value, 1)}
        else:
            spread[name] = value
    return spread
