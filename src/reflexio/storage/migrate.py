"""Brings a database to the current schema, step by step. A database with a newer schema is never touched."""

from pathlib import Path

from sqlalchemy import Column, Connection, MetaData, PrimaryKeyConstraint, String, Table, inspect, text

from reflexio.errors import StorageCorrupt, StorageNewer, StorageUnfinished
from reflexio.storage.fulltext.index import FulltextIndex
from reflexio.storage.schema import FULLTEXT_ENTITIES, metadata

REVISIONS = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008")
"""All schema versions, oldest first; the last one is current. A test compares them with the migration files."""


def migrate(connection: Connection, path: str) -> None:
    tables, revision = inspect(connection).get_table_names(), None
    if "alembic_version" in tables:
        revision = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
    elif tables:
        raise StorageCorrupt(path=path)
    if revision == REVISIONS[-1]:
        _check_columns(connection, path)
    elif revision is None:
        _create(connection)
    elif revision is not None and revision not in REVISIONS:
        raise StorageNewer(path=path, found=revision, known=REVISIONS[-1])
    else:
        _upgrade(connection)


def _check_columns(connection: Connection, path: str) -> None:
    """The first schema changed before its first release, so its number alone does not say which columns exist."""
    if connection.dialect.name != "sqlite":
        return
    query = "SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'"
    present = {(table, column) for table, column in connection.exec_driver_sql(query)}
    required = {(table.name, column.name) for table in metadata.tables.values() for column in table.columns}
    if missing := sorted(required - present):
        raise StorageUnfinished(path=path, missing=".".join(missing[0]))


def _create(connection: Connection) -> None:
    """Creates what all migrations together would create, in less time. A test compares the two."""
    if connection.dialect.name == "postgresql":
        from reflexio.storage import postgres_schema

        postgres_schema.create(connection)
    else:
        metadata.create_all(connection)
        for entity in FULLTEXT_ENTITIES:
            FulltextIndex(entity).create(connection)
    versions = Table(
        "alembic_version",
        MetaData(),
        Column("version_num", String(32), nullable=False),
        PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
    )
    versions.create(connection)
    connection.execute(versions.insert().values(version_num=REVISIONS[-1]))


def _upgrade(connection: Connection, to: str = REVISIONS[-1]) -> None:
    # Alembic takes a third of a second to import, and most starts have nothing to migrate.
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    command.upgrade(config, to)
