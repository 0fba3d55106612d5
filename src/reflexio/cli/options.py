"""The options that many commands have, and the client that they share.

`--url` and the variables REFLEXIO_URL and REFLEXIO_API_KEY say where the server is and with which key, everywhere.
"""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from reflexio.client.sync import ReflexioClient

Url = Annotated[
    str,
    typer.Option(
        "--url",
        help="Address of the server (REFLEXIO_URL, else http://127.0.0.1:8081). The key is REFLEXIO_API_KEY.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
User = Annotated[str | None, typer.Option("--user", help="Only of this user.")]
AgentVersion = Annotated[str | None, typer.Option("--agent-version", help="Only of this agent version.")]
PlaybookName = Annotated[str | None, typer.Option("--playbook-name", help="Only of this playbook type.")]
Source = Annotated[str | None, typer.Option("--source", help="Only from this source.")]
Limit = Annotated[int, typer.Option("--limit", help="Show at most this many, the newest first.", min=1)]
ShowAll = Annotated[bool, typer.Option("--all", help="Show all of them.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask whether to do it.")]
Scope = Annotated[str | None, typer.Option("--scope", help="When it belongs into a prompt: always or when_relevant.")]
SHOWN = 20
"""Rows of a list, unless more are asked for."""


def connect(url: str, *, timeout: float = 60.0) -> "ReflexioClient":
    """The client that a command uses. It is loaded here: a starting server and `--help` need none."""
    from reflexio.client.sync import ReflexioClient

    return ReflexioClient(url_endpoint=url, timeout=timeout)


def is_terminal() -> bool:
    """Whether a person can answer questions."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def confirm(question: str, *, yes: bool) -> None:
    """Asks before something that cannot be undone. Without a person who can answer, `--yes` must be given."""
    from reflexio.cli.exit_codes import FAILED, WRONG_COMMAND, fail
    from reflexio.cli.terminal import visible

    if yes:
        return
    if not is_terminal():
        fail(f"{question} Nobody can be asked here: give --yes to do it.", WRONG_COMMAND)
    if not typer.confirm(visible(question)):
        fail("Nothing was changed.", FAILED)
