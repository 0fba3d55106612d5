"""`reflexio erasure`: delete everything of a user, and prove that nothing of them is left."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reflexio.cli.exit_codes import FAILED
from reflexio.cli.local import DEFAULT_ORG, Data, with_database
from reflexio.cli.options import AsJson, Url, Yes, confirm, connect
from reflexio.cli.output import print_json
from reflexio.cli.terminal import echo

if TYPE_CHECKING:
    from reflexio.interactions.erase import Verification
    from reflexio.models.interaction import ErasureReceipt
    from reflexio.ports.storage import Database

app = typer.Typer(help="Erase a user, and prove that nothing of them is left.", no_args_is_help=True)


@app.command(epilog="Example: reflexio erasure run ann --receipt ann-receipt.json")
def run(
    user_id: Annotated[str, typer.Argument(help="The user to erase.")],
    receipt: Annotated[
        Path | None, typer.Option(help="Write the receipt of the erasure to this file, which must not exist.")
    ] = None,
    withdraw_unsupported: Annotated[
        bool,
        typer.Option("--withdraw-unsupported", help="Also withdraw agent playbooks that too few others support."),
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """Delete everything of one user from the running server: turns, profiles, playbooks, and every trace in others.

    It cannot be undone. Backups that were made before still have the user: keep the receipt, with which
    `reflexio restore` erases the user once more.
    """
    confirm(f"Delete everything of {user_id!r}?", yes=yes)
    if receipt:
        receipt.touch(0o600, exist_ok=False)
    with connect(url) as client:
        response = client.clear_user_data(user_id, withdraw_unsupported=withdraw_unsupported)
    if receipt and response.receipt:
        receipt.write_text(response.receipt.model_dump_json(indent=2), encoding="utf-8")
    if as_json:
        print_json(response)
        return
    echo(response.message)
    if response.withdrawn_agent_playbooks:
        echo(f"Withdrew {response.withdrawn_agent_playbooks} agent playbook(s).")


@app.command(epilog="Example: reflexio erasure verify ann --receipt ann-receipt.json")
def verify(
    user_id: Annotated[str, typer.Argument(help="The erased user.")],
    receipt: Annotated[
        Path | None, typer.Option(help="The response of clear_user_data, or its receipt, as JSON.")
    ] = None,
    org: Annotated[str, typer.Option(help="The organisation of the user.")] = DEFAULT_ORG,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Search all tables of the database on this machine for an erased user, and check the receipt of the erasure.

    The exit code is 1 when rows are left, when the receipt was changed or is about somebody else, or when this
    database did not issue it. It may run while the server runs.
    """
    given = read_receipt(receipt) if receipt else None

    async def search(database: "Database") -> "Verification":
        from reflexio.interactions.erase import verify as verify_erasure

        return await verify_erasure(database.of(org), user_id, given)

    verification = with_database(data, search)
    if as_json:
        problem = {"receipt_problem": verification.receipt_problem, "leftovers": dict(verification.leftovers)}
        print_json({"is_erased": verification.is_erased, **problem})
    else:
        _print(verification, has_receipt=given is not None)
    if not verification.is_erased:
        raise typer.Exit(FAILED)


def _print(verification: "Verification", *, has_receipt: bool) -> None:
    for table, count in verification.leftovers.items():
        echo(f"LEFT    {table}: {count} row(s)")
    if verification.receipt_problem:
        echo(f"WRONG   receipt: {verification.receipt_problem}")
    if verification.is_erased:
        echo("ok      nothing of the user is left" + (", and the receipt fits" if has_receipt else ""))


def read_receipt(path: Path) -> "ErasureReceipt":
    """The receipt in a file. Raises InvalidRequest when it holds none."""
    from pydantic import ValidationError

    from reflexio.errors import InvalidRequest
    from reflexio.models.interaction import ErasureReceipt

    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return ErasureReceipt.model_validate(document.get("receipt", document))
    except (OSError, ValueError, AttributeError, ValidationError) as error:
        raise InvalidRequest(f"{path} is not a receipt: {error}") from error
