"""Bringing a database to today's schema, step by step, and never touching one that is newer."""

from pathlib import Path

from sqlalchemy import Column, Connection, MetaData, PrimaryKeyConstraint, String, Table, inspect, text

from reflexio.errors import StorageCorrupt, StorageNewer, StorageUnfinished
from reflexio.storage.schema import WITH_WORDS, metadata
from reflexio.storage.search.words import Words

REVISIONS = ("0001",)
"""All schema versions, oldest first; the last one is today's. A test compares them with the migration files."""


def migrate(connection: Connection, path: str) -> None:
    found = _revision(connection, path)
    if found == REVISIONS[-1]:
        _look_through(connection, path)
        return
    if found is None and connection.dialect.name == "sqlite":
        _make(connection)
        return
    if found is not None and found not in REVISIONS:
        raise StorageNewer(path=path, found=found, known=REVISIONS[-1])
    _upgrade(connection)


def _revision(connection: Connection, path: str) -> str | None:
    tables = inspect(connection).get_table_names()
    if "alembic_version" in tables:
        return connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
    if tables:
        raise StorageCorrupt(path=path)
    return None


def _look_through(connection: Connection, path: str) -> None:
    """Before the first release the first schema changed in its place: its number alone does not say enough."""
    if connection.dialect.name != "sqlite":
        return
    query = "SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'"
    found = {(table, column) for table, column in connection.exec_driver_sql(query)}
    wanted = {(table.name, column.name) for table in metadata.tables.values() for column in table.columns}
    if missing := sorted(wanted - found):
        raise StorageUnfinished(path=path, missing=".".join(missing[0]))


def _make(connection: Connection) -> None:
    """A new database as all migrations together would make it, without what they cost. A test compares the two."""
    metadata.create_all(connection)
    for entity in WITH_WORDS:
        Words(entity).create(connection)
    versions = Table(
        "alembic_version",
        MetaData(),
        Column("version_num", String(32), nullable=False),
        PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
    )
    versions.create(connection)
    connection.execute(versions.insert().values(version_num=REVISIONS[-1]))


def _upgrade(connection: Connection, to: str = REVISIONS[-1]) -> None:
    # Alembic costs a third of a second to import, and most starts have nothing to migrate.
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    command.upgrade(config, to)
