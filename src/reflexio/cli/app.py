"""The commands `serve`, `mcp`, `doctor` and `demo`, and the groups `keys`, `review`, `optimise` and `erasure`."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer

import reflexio
from reflexio.cli import erasure, keys, optimise, review
from reflexio.cli.doctor import doctor
from reflexio.cli.mcp import mcp
from reflexio.errors import InvalidRequest
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
app.add_typer(erasure.app, name="erasure")


@app.callback(invoke_without_command=True)
def root(show_version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False) -> None:
    if show_version:
        typer.echo(reflexio.__version__)
        raise typer.Exit


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on (127.0.0.1).")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on (8081).", min=0, max=65535)] = None,
    data: Annotated[Path | None, typer.Option(help="Folder of the embedded database (~/.reflexio).")] = None,
) -> None:
    """Start the server."""
    from reflexio.server.run import serve as run

    options: dict[str, Any] = {"host": host, "port": port, "data": data}
    run(dataclasses.replace(Settings.read(), **{name: value for name, value in options.items() if value is not None}))


app.command()(mcp)
app.command()(doctor)


@app.command()
def demo(
    stay: Annotated[
        bool, typer.Option("--open", help="Fill a server with four weeks of a shop, keep it running, open a browser.")
    ] = False,
    data: Annotated[Path | None, typer.Option(help="With --open: the folder to fill (a temporary one).")] = None,
    port: Annotated[int, typer.Option(help="With --open: port to listen on (8081, or a free one).", min=0)] = 0,
) -> None:
    """Start a server in a temporary folder, publish a few conversations, show what was learned, and stop."""
    if stay:
        from reflexio.cli.demo_shop.serve import serve_demo

        serve_demo(data, port)
        return
    if data or port:
        raise InvalidRequest("--data and --port belong to --open; the short demo uses a temporary folder.")
    from reflexio.cli.demo import demo as run

    run()
