"""Insert or replace, in the dialect at hand."""

from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite


def put(connection: Connection, table: Table, row: dict[str, Any], *, keep: frozenset[str] = frozenset()) -> None:
    """Stores `row` under its primary key; an existing row takes all its values but those named in `keep`."""
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    primary = [column.name for column in table.primary_key]
    statement = insert(table)
    changed = {name: statement.excluded[name] for name in row if name not in primary and name not in keep}
    connection.execute(statement.on_conflict_do_update(index_elements=primary, set_=changed), row)
