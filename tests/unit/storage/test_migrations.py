"""Schema and migrations agree."""

from pathlib import Path
from typing import Any

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from reflexio.storage import migrate, migrations
from reflexio.storage.schema import metadata
from tests.builders import on_database


def test_migrating_makes_the_schema(tmp_path: Path) -> None:
    options = {"compare_type": True, "include_name": _is_in_the_schema}
    differences = on_database(
        tmp_path,
        lambda database: database.read(
            lambda connection: compare_metadata(MigrationContext.configure(connection, opts=options), metadata)
        ),
    )
    assert differences == []


def _is_in_the_schema(name: str | None, kind: str, _: Any) -> bool:
    """All but the tables of words, which differ from database to database and make themselves."""
    return kind != "table" or "_words" not in (name or "")


def test_every_migration_is_listed_in_order() -> None:
    folder = Path(migrations.__file__).parent / "versions"
    files = sorted(file.name.partition("_")[0] for file in folder.glob("[0-9]*.py"))
    assert tuple(files) == migrate.REVISIONS
