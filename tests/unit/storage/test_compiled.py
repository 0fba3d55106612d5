"""Compiled queries return the same rows as SQLAlchemy would."""

from pathlib import Path

import pytest
from sqlalchemy import Connection, bindparam, insert, select, text

from reflexio.errors import StorageUnavailable
from reflexio.storage.compiled import CompiledQuery
from reflexio.storage.schema import learnings
from reflexio.storage.sqlite import open_sqlite

column = learnings.c
QUERY = (
    select(column.id, column.details)
    .where(column.org_id == bindparam("org"), column.id.in_(bindparam("ids", expanding=True)))
    .order_by(column.id)
    .limit(5)
)


def fill(connection: Connection) -> None:
    rows = [{"org_id": "acme", "kind": "profile", "details": {"number": n}} for n in range(1, 21)]
    connection.execute(insert(learnings), rows)


@pytest.mark.parametrize("ids", [[], [1], [2, 3], [4, 5, 6], [7, 99, 8, 9, 10], list(range(1, 21))])
async def test_lists_of_any_length_are_looked_up(tmp_path: Path, ids: list[int]) -> None:
    database = open_sqlite(tmp_path / "data.db")
    await database.write(fill)
    query, values = CompiledQuery(QUERY), {"org": "acme", "ids": ids}
    for _ in range(2):
        rows = await database.read(lambda connection: query.rows(connection, values))
        expected = await database.read(lambda connection: connection.execute(QUERY, values).all())
        assert rows == [tuple(row) for row in expected]
    await database.close()


async def test_an_error_of_the_driver_is_explained(tmp_path: Path) -> None:
    database = open_sqlite(tmp_path / "data.db")
    await database.write(lambda connection: connection.execute(text("DROP TABLE learnings")))
    for run in (database.read, database.write):
        with pytest.raises(StorageUnavailable, match="no such table"):
            await run(lambda connection: CompiledQuery(QUERY).rows(connection, {"org": "acme", "ids": [1]}))
    await database.close()
