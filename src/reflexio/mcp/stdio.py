"""`reflexio mcp`: the MCP server on standard input and output, over a client of a running Reflexio server."""

import asyncio
import getpass

from reflexio.client.aio import AsyncReflexioClient
from reflexio.errors import InvalidRequest
from reflexio.mcp.access import MemoryAccess


def serve_stdio(*, url: str = "", user_id: str = "", agent_version: str = "") -> None:
    """Serves until the host closes standard input. The key comes from REFLEXIO_API_KEY."""
    try:
        import mcp  # noqa: F401
    except ModuleNotFoundError as error:
        raise InvalidRequest(f"{error}. Install it: pip install 'reflexio-learn[mcp]'") from None
    asyncio.run(_serve(url, user_id.strip(), agent_version.strip()))


async def _serve(url: str, user_id: str, agent_version: str) -> None:
    from mcp.server.stdio import stdio_server

    from reflexio.mcp.session import create_server

    async with AsyncReflexioClient(url_endpoint=url) as client, stdio_server() as (incoming, outgoing):
        server = create_server(MemoryAccess(client, user_id, agent_version, reviewer=user_id or _login_name()))
        await server.run(incoming, outgoing, server.create_initialization_options())


def _login_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no user is logged in, as in a container
        return ""
