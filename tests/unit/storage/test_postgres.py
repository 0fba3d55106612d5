"""What only PostgreSQL has: the second wall around organisations, its own indexes, and errors with a remedy."""

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest

from reflexio.errors import InvalidRequest, StorageUnavailable
from reflexio.models.learning import Kind, Learning
from reflexio.ports.storage import LearningFilter, Tx
from reflexio.storage import schema
from reflexio.storage.postgres import PostgresDatabase, explain, open_postgres
from reflexio.storage.postgres_schema import PARTIAL

PLAYBOOK = Learning(Kind.USER_PLAYBOOK, "Serve tea", user_id="ann", created_at=1, modified_at=1)


@pytest.fixture
async def database(empty_postgres: str) -> AsyncIterator[PostgresDatabase]:
    database = open_postgres(empty_postgres)
    yield database
    await database.close()


async def test_a_statement_without_any_condition_sees_the_rows_of_its_organisation_alone(
    database: PostgresDatabase,
) -> None:
    for org_id in ("acme", "other"):
        await database.of(org_id).write(lambda tx: tx.learnings.add([PLAYBOOK]))

    def all_rows(connection: object) -> list[tuple[object, ...]]:
        return list(connection.exec_driver_sql("SELECT org_id FROM learnings"))  # type: ignore[attr-defined]

    assert await database.read(all_rows, org_id="acme") == [("acme",)]
    assert sorted(await database.read(all_rows)) == [("acme",), ("other",)]
    with pytest.raises(StorageUnavailable):
        await database.write(
            lambda connection: connection.exec_driver_sql("UPDATE learnings SET org_id = 'other'"), org_id="acme"
        )


def test_a_connection_that_names_no_organisation_sees_nothing(empty_postgres: str) -> None:
    database = open_postgres(empty_postgres)
    asyncio.run(database.of("acme").write(lambda tx: tx.learnings.add([PLAYBOOK])))
    asyncio.run(database.close())
    with psycopg.connect(empty_postgres) as connection:
        assert connection.execute("SELECT count(*) FROM learnings").fetchone() == (0,)


def test_every_table_with_an_organisation_is_behind_the_wall(prepared_postgres: str) -> None:
    with psycopg.connect(prepared_postgres) as connection:
        rows = connection.execute("SELECT relname FROM pg_class WHERE relforcerowsecurity").fetchall()
        words = connection.execute("SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE '%\\_words%'")
        names = {name for (name,) in words.fetchall()}
    behind = {name for (name,) in rows}
    assert behind >= names | {table.name for table in schema.metadata.sorted_tables if "org_id" in table.columns}
    assert names


def test_partial_indexes_are_those_of_sqlite() -> None:
    partial = {
        index.name
        for table in schema.metadata.sorted_tables
        for index in table.indexes
        if index.dialect_options["sqlite"]["where"] is not None
    }
    assert partial == PARTIAL.keys()


async def test_writers_of_the_same_row_all_succeed(database: PostgresDatabase) -> None:
    store = database.of("acme")
    await asyncio.gather(*(store.write(lambda tx: tx.users.mark_unlearned("ann", 5)) for _ in range(30)))
    waiting = await store.read(lambda tx: tx.users.waiting("ann"))
    assert waiting is not None


async def test_counters_of_a_scope_are_right_after_many_writers(database: PostgresDatabase) -> None:
    store = database.of("acme")

    def add(tx: Tx) -> list[int]:
        return tx.learnings.add([PLAYBOOK])

    await asyncio.gather(*(store.write(add) for _ in range(20)))
    await store.write(lambda tx: tx.learnings.remove(LearningFilter(Kind.USER_PLAYBOOK, ids=(1, 2, 3))))
    assert await database.problems() == []


async def test_idle_connections_that_postgresql_closed_are_replaced(
    database: PostgresDatabase, empty_postgres: str
) -> None:
    await database.ping()
    with psycopg.connect(empty_postgres, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'reflexio'"
            " AND usename = current_user AND pid <> pg_backend_pid()"
        )
    await database.ping()


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("postgresql://nobody:secret-word@127.0.0.1:1/none", "does not answer"),
        ("user=reflexio dbname=no_such_database", "CREATE DATABASE"),
        ("user=no_such_role dbname=reflexio", "CREATE ROLE"),
    ],
)
def test_an_address_that_does_not_work_is_one_sentence(prepared_postgres: str, address: str, words: str) -> None:
    base = "" if address.startswith("postgresql") else prepared_postgres + " "
    with pytest.raises(StorageUnavailable, match=words) as error:
        open_postgres(base + address)
    assert "secret-word" not in str(error.value)
    assert "\n" not in str(error.value)


def test_what_is_no_address_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="postgresql://"):
        open_postgres("nonsense with blanks")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (psycopg.errors.DiskFull("x"), "disk"),
        (psycopg.errors.TooManyConnections("x"), "max_connections"),
        (psycopg.errors.ReadOnlySqlTransaction("x"), "replica"),
        (psycopg.errors.FeatureNotSupported("x"), "pgvector"),
        (psycopg.errors.InsufficientPrivilege("x"), "privilege"),
        (psycopg.OperationalError('FATAL: password authentication failed for user "ann"'), "password"),
        (psycopg.errors.UndefinedTable("relation secret_rows"), "42P01"),
    ],
)
def test_errors_say_what_to_do_and_show_nothing(error: psycopg.Error, words: str) -> None:
    explained = str(explain(error))
    assert words in explained
    assert "secret_rows" not in explained
