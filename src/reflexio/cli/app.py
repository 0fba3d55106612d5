"""All commands and their options."""

import dataclasses
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from reflexio.cli import keys, optimise, review
from reflexio.server.loading import loading
from reflexio.settings import Settings

app = typer.Typer(
    help="Reflexio, the learning layer for AI agents.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(keys.app, name="keys")
app.add_typer(review.app, name="review")
app.add_typer(optimise.app, name="optimise")


def _with(**given: Any) -> Settings:
    """The environment's settings, with what the command line says."""
    return dataclasses.replace(Settings.read(), **{name: value for name, value in given.items() if value is not None})


@app.callback(invoke_without_command=True)
def root(show_version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False) -> None:
    if show_version:
        typer.echo(version("reflexio"))
        raise typer.Exit


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on (127.0.0.1).")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on (8081).", min=0, max=65535)] = None,
    data: Annotated[Path | None, typer.Option(help="Folder of the embedded database (~/.reflexio).")] = None,
) -> None:
    """Start the server."""
    with loading():
        from reflexio.server.run import serve as run

    run(_with(host=host, port=port, data=data))


@app.command()
def demo() -> None:
    """Start a server in a temporary folder, publish a few conversations, show what was learned, and stop."""
    from reflexio.cli.demo import demo as run

    run()
