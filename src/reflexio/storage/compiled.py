"""Statements that every publish or search runs. They are compiled once: building them costs more than running them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Boolean, Connection, Insert, Select
from sqlalchemy.exc import DBAPIError

Values = dict[str, Any]
Convert = Callable[[Any], Any]


class CompiledStatement:
    """An INSERT that is compiled for a dialect at its first use, and from then on handed straight to the driver."""

    def __init__(self, build: Callable[[str], Insert], columns: Sequence[str]) -> None:
        self._build = build
        self._columns = columns
        self._compiled: dict[str, tuple[str, list[str] | None, dict[str, Convert]]] = {}

    def run(self, connection: Connection, rows: Sequence[Values]) -> int:
        """Returns how many rows were written. Values of `rows` are converted in place."""
        dialect = connection.dialect
        if dialect.name not in self._compiled:
            self._compiled[dialect.name] = self._compile(dialect)
        sql, order, converters = self._compiled[dialect.name]
        for row in rows:
            for column, convert in converters.items():
                row[column] = convert(row[column])
        values: list[Any] = list(rows) if order is None else [tuple([row[column] for column in order]) for row in rows]
        cursor = connection.connection.cursor()
        try:
            cursor.executemany(sql, values)
            return cursor.rowcount
        except dialect.loaded_dbapi.Error as error:
            raise DBAPIError.instance(sql, None, error, dialect.loaded_dbapi.Error) from error
        finally:
            cursor.close()

    def _compile(self, dialect: Any) -> tuple[str, list[str] | None, dict[str, Convert]]:
        compiled: Any = self._build(dialect.name).compile(dialect=dialect, column_keys=list(self._columns))
        types = {bind.key: bind.type.dialect_impl(dialect) for bind in compiled.binds.values()}
        # Drivers take booleans as they are.
        converters = {
            key: convert
            for key, kind in types.items()
            if not isinstance(kind, Boolean) and (convert := kind.bind_processor(dialect)) is not None
        }
        return str(compiled), compiled.positiontup, converters


class CompiledQuery:
    """A SELECT that is compiled at its first use, and from then on handed straight to the driver. Rows are tuples.

    A list among the values is padded with its last entry to a power of two, so that a few compiled statements serve
    lists of any length.
    """

    def __init__(self, query: Select[Any]) -> None:
        self._query = query
        self._expanded: dict[tuple[Any, ...], _ExpandedQuery] = {}

    def rows(self, connection: Connection, values: Values) -> list[tuple[Any, ...]]:
        padded = {name: _pad(value) if isinstance(value, list) else value for name, value in values.items()}
        lengths = [len(value) for value in padded.values() if isinstance(value, list)]
        key = (connection.dialect.name, *lengths)
        if key not in self._expanded:
            self._expanded[key] = _ExpandedQuery.compile(self._query, connection, padded)
        return self._expanded[key].rows(connection, padded)


@dataclass(frozen=True, slots=True)
class _ExpandedQuery:
    """A query for one dialect and lists of one length, and converters for those columns that need one."""

    sql: str
    order: Sequence[str] | None
    constants: Values
    converters: list[tuple[int, Convert]]

    @classmethod
    def compile(cls, query: Select[Any], connection: Connection, values: Values) -> "_ExpandedQuery":
        dialect = connection.dialect
        state: Any = query.compile(dialect=dialect).construct_expanded_state(values)
        constants = {name: value for name, value in state.parameters.items() if name not in _flatten(values)}
        types = [column.type.dialect_impl(dialect) for column in query.selected_columns]
        converters = [(place, kind.result_processor(dialect, None)) for place, kind in enumerate(types)]
        return cls(
            state.statement, state.positiontup, constants, [(at, convert) for at, convert in converters if convert]
        )

    def rows(self, connection: Connection, values: Values) -> list[tuple[Any, ...]]:
        bound = {**self.constants, **_flatten(values)}
        parameters = bound if self.order is None else [bound[name] for name in self.order]
        rows: list[tuple[Any, ...]] = driver_connection(connection).execute(self.sql, parameters).fetchall()
        return [self._convert(row) for row in rows] if self.converters else rows

    def _convert(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        values = list(row)
        for place, convert in self.converters:
            values[place] = convert(values[place])
        return tuple(values)


def driver_connection(connection: Connection) -> Any:
    """The driver's own connection, for statements so frequent that SQLAlchemy's overhead counts."""
    return connection.connection.driver_connection


def _pad(values: list[Any]) -> list[Any]:
    return values + values[-1:] * ((1 << (len(values) - 1).bit_length()) - len(values)) if values else values


def _flatten(values: Values) -> Values:
    """The values, with the entries of a list under the names that SQLAlchemy gives to them."""
    flat: Values = {}
    for name, value in values.items():
        if isinstance(value, list):
            flat |= {f"{name}_{number}": entry for number, entry in enumerate(value, 1)}
        else:
            flat[name] = value
    return flat
