"""All commands, and those of the process itself: `serve` and `demo`. What a command needs is imported when it runs."""

import dataclasses
import inspect
from pathlib import Path
from typing import Annotated, Any

import typer

from reflexio.cli import (
    config,
    erasure,
    interactions,
    keys,
    learning,
    optimise,
    playbooks,
    profiles,
    review,
    skills,
    transfer,
)
from reflexio.cli.backup import backup, restore
from reflexio.cli.doctor import doctor
from reflexio.cli.local import read_settings
from reflexio.cli.mcp import mcp
from reflexio.cli.publish import publish
from reflexio.cli.search import context, search

app = typer.Typer(
    name="reflexio",
    help="Reflexio, the learning layer for AI agents: what they experience becomes what they know.",
    epilog="Begin with `reflexio demo`, or with `reflexio serve` in one terminal and `reflexio publish` in another.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
SERVER, CONVERSATIONS = "The server", "Conversations and what was learned"
DECISIONS, OPERATION = "Learning and review", "Operation"


Database = Annotated[
    str | None,
    typer.Option(help="PostgreSQL with pgvector, postgresql://user@host/name (REFLEXIO_DATABASE), instead of --data."),
]


@app.callback(invoke_without_command=True)
def root(show_version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False) -> None:
    if show_version:
        import reflexio

        typer.echo(reflexio.__version__)
        raise typer.Exit


@app.command(rich_help_panel=SERVER, epilog="Example: reflexio serve --port 8081 --data ~/.reflexio")
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on (REFLEXIO_HOST, else 127.0.0.1).")] = None,
    port: Annotated[
        int | None, typer.Option(help="Port to listen on (REFLEXIO_PORT, else 8081).", min=0, max=65535)
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder of the embedded database (REFLEXIO_DATA, else ~/.reflexio).")
    ] = None,
    database: Database = None,
    no_worker: Annotated[
        bool, typer.Option("--no-worker", help="Start no worker beside the server; run `reflexio worker` apart.")
    ] = False,
) -> None:
    """Start the server, and a worker that learns beside it. They run until Ctrl-C or SIGTERM."""
    from reflexio.server.run import serve as run

    options: dict[str, Any] = {"host": host, "port": port, "database": database}
    named = {name: value for name, value in options.items() if value is not None}
    run(dataclasses.replace(read_settings(data), **named), with_worker=not no_worker)


@app.command(rich_help_panel=SERVER, epilog="Example: reflexio worker --database postgresql://reflexio@db/reflexio")
def worker(
    data: Annotated[
        Path | None, typer.Option(help="Folder of the embedded database (REFLEXIO_DATA, else ~/.reflexio).")
    ] = None,
    database: Database = None,
    beside_server: Annotated[bool, typer.Option("--beside-server", hidden=True)] = False,
) -> None:
    """Learn, index and aggregate what servers store. It runs until Ctrl-C or SIGTERM.

    On PostgreSQL any number of workers share the work. On the embedded database one works, and others wait to take
    over.
    """
    from reflexio.server.worker import run_worker

    settings = read_settings(data)
    run_worker(dataclasses.replace(settings, database=database or settings.database), beside_server=beside_server)


@app.command(rich_help_panel=SERVER, epilog="Example: reflexio demo --open")
def demo(
    stay: Annotated[
        bool, typer.Option("--open", help="Fill a server with four weeks of a shop, keep it running, open a browser.")
    ] = False,
    data: Annotated[Path | None, typer.Option(help="With --open: the folder to fill (a temporary one).")] = None,
    port: Annotated[int, typer.Option(help="With --open: port to listen on (8081, or a free one).", min=0)] = 0,
) -> None:
    """Start a server in a temporary folder, publish a few conversations, show what was learned, and stop.

    With --open it fills a server with four weeks of a made-up shop chain instead: some 370 conversations of 37 people
    with three agents, what was learned from them, reviews, optimiser runs and operations. It prints the address, opens
    a browser if there is one, and runs until Ctrl-C. Filling takes some 15 seconds and asks no model; the optimiser's
    assistant and judge are scripts, and are shown as such. A folder with a database is served as it is.
    """
    if stay:
        from reflexio.cli.demo_shop.serve import serve_demo

        serve_demo(data, port)
        return
    if data or port:
        from reflexio.errors import InvalidRequest

        raise InvalidRequest("--data and --port belong to --open; the short demo uses a temporary folder.")
    from reflexio.cli.demo import demo as run

    run()


app.command(rich_help_panel=SERVER, epilog="Example: reflexio mcp --user ann")(mcp)
app.command(rich_help_panel=SERVER, epilog="Example: reflexio doctor --json")(doctor)
app.command(
    rich_help_panel=CONVERSATIONS,
    epilog='Example: reflexio publish --user ann "User: Call me Ann." "Agent: Gladly, Ann."',
)(publish)
app.command(rich_help_panel=CONVERSATIONS, epilog='Example: reflexio context "Where is my parcel?" --user ann')(context)
app.command(rich_help_panel=CONVERSATIONS, epilog='Example: reflexio search "parcel" --user ann')(search)
app.add_typer(interactions.app, name="interactions", rich_help_panel=CONVERSATIONS)
app.add_typer(profiles.app, name="profiles", rich_help_panel=CONVERSATIONS)
app.add_typer(playbooks.app, name="playbooks", rich_help_panel=CONVERSATIONS)
app.command(rich_help_panel=DECISIONS, epilog="Example: reflexio aggregate --agent-version v2")(learning.aggregate)
app.add_typer(review.app, name="review", rich_help_panel=DECISIONS)
app.add_typer(optimise.app, name="optimise", rich_help_panel=DECISIONS)
app.add_typer(learning.rerun, name="rerun", rich_help_panel=DECISIONS)
app.add_typer(learning.upgrade, name="upgrade", rich_help_panel=DECISIONS)
app.add_typer(learning.downgrade, name="downgrade", rich_help_panel=DECISIONS)
app.command(rich_help_panel=DECISIONS, epilog="Example: reflexio stall")(learning.stall)
app.add_typer(config.app, name="config", rich_help_panel=OPERATION)
app.add_typer(keys.app, name="keys", rich_help_panel=OPERATION)
app.command(rich_help_panel=OPERATION, epilog="Example: reflexio export acme.jsonl.gz")(transfer.export)
app.command("import", rich_help_panel=OPERATION, epilog="Example: reflexio import acme.jsonl.gz")(transfer.import_)
app.add_typer(skills.app, name="skills", rich_help_panel=OPERATION)
app.command(rich_help_panel=OPERATION, epilog="Example: reflexio backup monday.db")(backup)
app.command(rich_help_panel=OPERATION, epilog="Example: reflexio restore monday.db --replace")(restore)
app.add_typer(erasure.app, name="erasure", rich_help_panel=OPERATION)


def _join_lines(commands: typer.Typer) -> None:
    """Joins the lines of each paragraph of the help texts: the terminal's width decides where they break."""
    for command in commands.registered_commands:
        paragraphs = inspect.cleandoc(command.callback.__doc__ or "").split("\n\n") if command.callback else []
        command.help = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    for group in commands.registered_groups:
        if group.typer_instance:
            _join_lines(group.typer_instance)


_join_lines(app)
