"""Statements that every publish runs: compiled once and handed to the driver, because building them costs most."""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Boolean, Connection, Insert
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
