"""`reflexio keys`: create, list and revoke the API keys of the database on this machine."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from reflexio.cli.terminal import echo
from reflexio.errors import NotFound
from reflexio.models.access import KeyScope
from reflexio.organisations import keys
from reflexio.ports.clock import SystemClock
from reflexio.ports.storage import Database
from reflexio.settings import Settings

app = typer.Typer(help="API keys. Each key belongs to one organisation.", no_args_is_help=True)
Data = Annotated[Path | None, typer.Option(help="Folder of the embedded database (~/.reflexio).")]
ALL = ",".join(KeyScope)
T = TypeVar("T")


def _with_database(data: Path | None, action: Callable[[Database], Awaitable[T]], *, create: bool = False) -> T:
    """Runs `action` on the database, which must exist unless `create` is true."""
    from reflexio.app import DATABASE, open_database

    async def run() -> T:
        settings = Settings.read()
        settings = dataclasses.replace(settings, data=data) if data else settings
        if not create and not (settings.data / DATABASE).exists():
            raise NotFound("Choose its folder with --data.", what="database in", id=str(settings.data))
        database = await open_database(settings)
        try:
            return await action(database)
        finally:
            await database.close()

    return asyncio.run(run())


@app.command()
def create(
    org: Annotated[str, typer.Option(help="The organisation of the key.")] = keys.DEFAULT_ORG,
    label: Annotated[str, typer.Option(help="A note for yourself.")] = "",
    scopes: Annotated[str, typer.Option(help="What it may do, such as publish,read (all scopes).")] = ALL,
    owner: Annotated[str, typer.Option(help="Its owner: the reviewer that decisions with it are recorded under.")] = "",
    data: Data = None,
) -> None:
    """Create a key and show it, once."""
    chosen = keys.parse_scopes(scopes)

    async def create_key(database: Database) -> keys.NewKey:
        return await keys.create(database, SystemClock(), org, label, scopes=chosen, owner=owner)

    created = _with_database(data, create_key, create=True)
    echo(created.token)
    note = f"Key {created.key.id} of organisation {created.key.org_id!r}, with {keys.describe_scopes(chosen)}."
    note = f"{note} It is not shown again."
    echo(f"{note} From now on every call needs a key.", err=True)


@app.command("list")
def list_keys(data: Data = None) -> None:
    """List the valid keys, with their scopes and owners."""
    for key in _with_database(data, lambda database: database.read_keys(lambda rows: rows.list())):
        day = datetime.fromtimestamp(key.created_at, UTC).date()
        permission = f"{keys.describe_scopes(key.scopes)}\t{key.owner or '-'}"
        echo(f"{key.id}\t{key.org_id}\t{key.prefix}…\t{day}\t{permission}\t{key.label}")


@app.command()
def revoke(
    key_id: Annotated[int, typer.Argument(help="The number that `reflexio keys list` shows.")], data: Data = None
) -> None:
    """Revoke a key. A running server refuses it within two seconds."""

    async def revoke_key(database: Database) -> bool:
        await keys.revoke(database, SystemClock(), key_id)
        return bool(await database.read_keys(lambda rows: rows.list()))

    other_keys = _with_database(data, revoke_key)
    echo(f"Key {key_id} is revoked.")
    if not other_keys:
        note = (
            "That was the last key. Unless the server has REFLEXIO_API_KEY, it now serves every caller on its machine"
        )
        echo(f"{note} as organisation {keys.DEFAULT_ORG!r}, without a key.", err=True)
