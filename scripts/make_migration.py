"""Writes the operations that bring the newest migration up to `reflexio.storage.schema`, to paste into a new one."""

import sys
import tempfile
from pathlib import Path

from alembic.autogenerate import produce_migrations, render_python_code
from alembic.migration import MigrationContext

from reflexio.storage.schema import metadata
from reflexio.storage.sqlite import open_sqlite


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        database = open_sqlite(Path(folder) / "reflexio.db")
        with database._reading.connect() as connection:
            wanted = produce_migrations(MigrationContext.configure(connection), metadata)
        assert wanted.upgrade_ops is not None
        sys.stdout.write(str(render_python_code(wanted.upgrade_ops)) + "\n")


if __name__ == "__main__":
    main()
