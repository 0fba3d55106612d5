"""Schema and migrations agree."""

from pathlib import Path

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from reflexio.storage import migrate, migrations
from reflexio.storage.schema import metadata
from tests.builders import on_database


def _ours(_: object, name: str | None, kind: str, *rest: object) -> bool:
    """The tables of words are made by their own room."""
    return kind != "table" or "_words" not in str(name)


def test_migrating_makes_the_schema(tmp_path: Path) -> None:
    differences = on_database(
        tmp_path,
        lambda database: database.read(
            lambda connection: compare_metadata(
                MigrationContext.configure(connection, opts={"compare_type": True, "include_object": _ours}), metadata
            )
        ),
    )
    assert differences == []


def test_every_migration_is_listed_in_order() -> None:
    folder = Path(migrations.__file__).parent / "versions"
    files = sorted(file.name.partition("_")[0] for file in folder.glob("[0-9]*.py"))
    assert tuple(files) == migrate.REVISIONS
