"""Insert or replace, in the dialect at hand."""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Table

if TYPE_CHECKING:
    from sqlalchemy.dialects.sqlite import Insert


def insert_for(dialect: str) -> "Callable[[Table], Insert]":
    """An INSERT that knows conflicts. Only the dialect in use is loaded: the other one takes time at each start."""
    insert: Callable[[Table], Insert] = import_module(f"sqlalchemy.dialects.{dialect}").insert
    return insert


def put(connection: Connection, table: Table, row: dict[str, Any], *, keep: frozenset[str] = frozenset()) -> None:
    """Stores `row` under its primary key; an existing row takes all its values but those named in `keep`."""
    primary = [column.name for column in table.primary_key]
    statement = insert_for(connection.dialect.name)(table)
    changed = {name: statement.excluded[name] for name in row if name not in primary and name not in keep}
    connection.execute(statement.on_conflict_do_update(index_elements=primary, set_=changed), row)
