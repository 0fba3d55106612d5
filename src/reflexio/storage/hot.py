"""Statements that every publish runs: compiled once, because building them costs more than running them."""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Connection, CursorResult, Insert

Row = dict[str, Any]


class Hot:
    """An INSERT that is built for a dialect at its first use, and from then on handed straight to the driver."""

    def __init__(self, build: Callable[[str], Insert], columns: Sequence[str]) -> None:
        self._build = build
        self._columns = columns
        self._made: dict[str, tuple[str, list[str] | None, dict[str, Callable[[Any], Any]]]] = {}

    def run(self, connection: Connection, rows: Sequence[Row]) -> CursorResult[Any]:
        name = connection.dialect.name
        if name not in self._made:
            self._made[name] = self._compiled(connection)
        sql, order, prepare = self._made[name]
        for column, made in prepare.items():
            rows = [{**row, column: made(row[column])} for row in rows]
        if order is None:
            return connection.exec_driver_sql(sql, list(rows))
        return connection.exec_driver_sql(sql, [tuple([row[column] for column in order]) for row in rows])

    def _compiled(self, connection: Connection) -> Any:
        compiled: Any = self._build(connection.dialect.name).compile(
            dialect=connection.dialect, column_keys=list(self._columns)
        )
        kinds = {bind.key: bind.type.dialect_impl(connection.dialect) for bind in compiled.binds.values()}
        made = {key: kind.bind_processor(connection.dialect) for key, kind in kinds.items()}
        prepare = {key: process for key, process in made.items() if process is not None}
        return str(compiled), compiled.positiontup, prepare
