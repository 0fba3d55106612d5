"""`reflexio mcp`: the Model Context Protocol on standard input and output. It needs no package of a server."""

from typing import Annotated

import typer

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def root() -> None:
    """Makes `mcp` a command here, as it is among all commands."""


@app.command()
def mcp(
    url: Annotated[str, typer.Option(help="Address of the server (REFLEXIO_URL, else http://127.0.0.1:8081).")] = "",
    user: Annotated[str, typer.Option(help="Bind the session to this user: its tools take no other.")] = "",
    agent_version: Annotated[str, typer.Option(help="Agent version of what is published and read.")] = "",
) -> None:
    """Serve the Model Context Protocol on standard input and output, for coding agents and other hosts."""
    from reflexio.mcp.stdio import serve_stdio

    serve_stdio(url=url, user_id=user, agent_version=agent_version)
