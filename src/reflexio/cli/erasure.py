"""`reflexio erasure`: prove that nothing of a user is left in the database on this machine."""

import asyncio
import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from reflexio.errors import InvalidRequest, NotFound
from reflexio.interactions.erase import Verification
from reflexio.interactions.erase import verify as verify_erasure
from reflexio.models.interaction import ErasureReceipt
from reflexio.organisations.keys import DEFAULT_ORG
from reflexio.settings import Settings

app = typer.Typer(help="Erasures of users.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Keeps `verify` a command of its own while it is the only one."""


@app.command()
def verify(
    user_id: Annotated[str, typer.Argument(help="The erased user.")],
    receipt: Annotated[
        Path | None, typer.Option(help="The response of clear_user_data, or its receipt, as JSON.")
    ] = None,
    org: Annotated[str, typer.Option(help="The organisation of the user.")] = DEFAULT_ORG,
    data: Annotated[Path | None, typer.Option(help="Folder of the embedded database (~/.reflexio).")] = None,
) -> None:
    """Search all tables for a user and check the receipt of the erasure. Exit code 1 when something is wrong."""
    given = _read_receipt(receipt) if receipt else None
    found = asyncio.run(_verify(data, org, user_id, given))
    for table, count in found.leftovers.items():
        typer.echo(f"LEFT    {table}: {count} row(s)")
    if found.receipt_problem:
        typer.echo(f"WRONG   receipt: {found.receipt_problem}")
    if not found.is_erased:
        raise typer.Exit(1)
    typer.echo("ok      nothing of the user is left" + (", and the receipt fits" if given else ""))


def _read_receipt(path: Path) -> ErasureReceipt:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        receipt = ErasureReceipt.model_validate(document.get("receipt", document))
    except (OSError, ValueError, AttributeError, ValidationError) as error:
        raise InvalidRequest(f"{path} is not a receipt: {error}") from error
    return receipt


async def _verify(data: Path | None, org: str, user_id: str, receipt: ErasureReceipt | None) -> Verification:
    from reflexio.app import DATABASE, open_database

    settings = Settings.read()
    settings = dataclasses.replace(settings, data=data) if data else settings
    if not (settings.data / DATABASE).exists():
        raise NotFound("Choose its folder with --data.", what="database in", id=str(settings.data))
    database = await open_database(settings)
    try:
        return await verify_erasure(database.of(org), user_id, receipt)
    finally:
        await database.close()
