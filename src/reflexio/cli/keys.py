"""`reflexio keys`: create, list and revoke the API keys of the database on this machine."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from reflexio.cli.local import DEFAULT_ORG, Data, with_database
from reflexio.cli.options import AsJson
from reflexio.cli.output import print_json, print_table
from reflexio.cli.terminal import echo

if TYPE_CHECKING:
    from reflexio.organisations.keys import NewKey
    from reflexio.ports.storage import Database, StoredApiKey

app = typer.Typer(help="API keys: create, list, revoke. Each belongs to one organisation.", no_args_is_help=True)
ALL = "publish,read,review,admin"


@app.command(epilog="Example: reflexio keys create --org acme --scopes publish,read --label bot")
def create(
    org: Annotated[str, typer.Option(help="The organisation of the key.")] = DEFAULT_ORG,
    label: Annotated[str, typer.Option(help="A note for yourself.")] = "",
    scopes: Annotated[str, typer.Option(help="What it may do, such as publish,read (all scopes).")] = ALL,
    owner: Annotated[str, typer.Option(help="Its owner: the reviewer that decisions with it are recorded under.")] = "",
    data: Data = None,
) -> None:
    """Create a key and print it, once. From the first key on, every call to a server on this database needs one.

    The token alone goes to standard output, a note about it to standard error.
    """
    from reflexio.organisations import keys
    from reflexio.ports.clock import SystemClock

    chosen = keys.parse_scopes(scopes)

    async def create_key(database: "Database") -> "NewKey":
        return await keys.create(database, SystemClock(), org, label, scopes=chosen, owner=owner)

    created = with_database(data, create_key, create=True)
    echo(created.token)
    note = f"Key {created.key.id} of organisation {created.key.org_id!r}, with {keys.describe_scopes(chosen)}."
    note = f"{note} It is not shown again."
    echo(f"{note} From now on every call needs a key.", err=True)


@app.command("list", epilog="Example: reflexio keys list")
def list_keys(as_json: AsJson = False, data: Data = None) -> None:
    """List the valid keys.

    A key that was created without scopes, also by an earlier version, has all scopes. In a pipe a line has: number,
    organisation, first characters, day, scopes, owner, label.
    """
    keys = with_database(data, lambda database: database.read_keys(lambda rows: rows.list()))
    if as_json:
        print_json([_as_json(key) for key in keys])
        return
    columns = ("key", "organisation", "begins", "created", "scopes", "owner", "label")
    print_table(columns, map(_row, keys), empty="There is no key: everybody on this machine is served.")


def _row(key: "StoredApiKey") -> tuple[object, ...]:
    from reflexio.organisations.keys import describe_scopes

    day = datetime.fromtimestamp(key.created_at, UTC).date()
    return key.id, key.org_id, f"{key.prefix}…", day, describe_scopes(key.scopes), key.owner or "-", key.label


def _as_json(key: "StoredApiKey") -> dict[str, object]:
    scopes = sorted(scope.value for scope in key.scopes)
    texts = {"label": key.label, "owner": key.owner, "prefix": key.prefix}
    return {"id": key.id, "org_id": key.org_id, "created_at": key.created_at, "scopes": scopes, **texts}


@app.command(epilog="Example: reflexio keys revoke 1")
def revoke(
    key_id: Annotated[int, typer.Argument(help="The number that `reflexio keys list` shows.")], data: Data = None
) -> None:
    """Revoke a key. A running server refuses it within two seconds."""
    from reflexio.organisations import keys
    from reflexio.ports.clock import SystemClock

    async def revoke_key(database: "Database") -> bool:
        await keys.revoke(database, SystemClock(), key_id)
        return bool(await database.read_keys(lambda rows: rows.list()))

    other_keys = with_database(data, revoke_key)
    echo(f"Key {key_id} is revoked.")
    if not other_keys:
        note = (
            "That was the last key. Unless the server has REFLEXIO_API_KEY, it now serves every caller on its machine"
        )
        echo(f"{note} as organisation {DEFAULT_ORG!r}, without a key.", err=True)
