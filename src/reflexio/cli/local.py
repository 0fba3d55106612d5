"""Commands that work on the embedded database of this machine, also while no server runs."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

if TYPE_CHECKING:
    from reflexio.ports.storage import Database
    from reflexio.settings import Settings

Data = Annotated[
    Path | None, typer.Option("--data", help="Folder of the embedded database (REFLEXIO_DATA, else ~/.reflexio).")
]
DEFAULT_ORG = "default"
T = TypeVar("T")


def read_settings(data: Path | None) -> "Settings":
    """The settings of the process, with the folder that the command names."""
    from reflexio.settings import Settings

    settings = Settings.read()
    return dataclasses.replace(settings, data=data) if data else settings


def with_database(data: Path | None, action: "Callable[[Database], Awaitable[T]]", *, create: bool = False) -> T:
    """Runs `action` on the database, which must exist unless `create` is true."""
    from reflexio.app import DATABASE, open_database
    from reflexio.errors import NotFound

    async def run() -> T:
        settings = read_settings(data)
        if not create and not settings.database and not (settings.data / DATABASE).exists():
            raise NotFound("Choose its folder with --data.", what="database in", id=str(settings.data))
        database = await open_database(settings)
        try:
            return await action(database)
        finally:
            await database.close()

    return asyncio.run(run())
