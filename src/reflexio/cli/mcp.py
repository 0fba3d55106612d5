"""`reflexio mcp`: the Model Context Protocol on standard input and output."""

from typing import Annotated

import typer

from reflexio.cli.options import Url


def mcp(
    user: Annotated[str, typer.Option(help="Bind the session to this user: its tools take no other.")] = "",
    agent_version: Annotated[str, typer.Option(help="Agent version of what is published and read.")] = "",
    url: Url = "",
) -> None:
    """Serve the Model Context Protocol on standard input and output, for coding agents and other hosts.

    The host starts it. It calls the server with the key in REFLEXIO_API_KEY, and offers what the key's scopes permit.
    """
    from reflexio.mcp.stdio import serve_stdio

    serve_stdio(url=url, user_id=user, agent_version=agent_version)
