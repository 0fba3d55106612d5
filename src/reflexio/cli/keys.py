"""`reflexio keys`: make, list and revoke API keys of the database on this machine."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from reflexio.errors import NotFound
from reflexio.organisations import keys
from reflexio.ports.clock import SystemClock
from reflexio.ports.storage import Database
from reflexio.settings import Settings

app = typer.Typer(help="API keys: each one speaks for one organisation.", no_args_is_help=True)
Data = Annotated[Path | None, typer.Option(help="Folder of the embedded database (~/.reflexio).")]
T = TypeVar("T")


def _with_database(data: Path | None, act: Callable[[Database], Awaitable[T]], *, new: bool = False) -> T:
    from reflexio.app import DATABASE, open_database

    async def run() -> T:
        settings = Settings.read()
        settings = dataclasses.replace(settings, data=data) if data else settings
        if not new and not (settings.data / DATABASE).exists():
            raise NotFound("Choose its folder with --data.", what="database in", id=str(settings.data))
        database = await open_database(settings)
        try:
            return await act(database)
        finally:
            await database.close()

    return asyncio.run(run())


@app.command()
def create(
    org: Annotated[str, typer.Option(help="The organisation that the key speaks for.")] = keys.DEFAULT_ORG,
    label: Annotated[str, typer.Option(help="A note for yourself.")] = "",
    data: Data = None,
) -> None:
    """Make a key and show it, once."""
    made = _with_database(data, lambda database: keys.create(database, SystemClock(), org, label), new=True)
    typer.echo(made.token)
    note = f"Key {made.key.id} of organisation {made.key.org_id!r}. It is not shown again."
    typer.echo(f"{note} From now on every call needs a key.", err=True)


@app.command("list")
def list_keys(data: Data = None) -> None:
    """Show the valid keys."""
    for key in _with_database(data, lambda database: database.read_keys(lambda rows: rows.list())):
        made = datetime.fromtimestamp(key.created_at, UTC).date()
        typer.echo(f"{key.id}\t{key.org_id}\t{key.prefix}…\t{made}\t{key.label}")


@app.command()
def revoke(key_id: int, data: Data = None) -> None:
    """Make a key invalid. A running server follows within two seconds."""

    async def act(database: Database) -> bool:
        await keys.revoke(database, SystemClock(), key_id)
        return bool(await database.read_keys(lambda rows: rows.list()))

    others = _with_database(data, act)
    typer.echo(f"Key {key_id} is revoked.")
    if not others:
        note = "That was the last key: unless the server has REFLEXIO_API_KEY, everybody on its machine is served"
        typer.echo(f"{note} as organisation {keys.DEFAULT_ORG!r}, without a key.", err=True)
