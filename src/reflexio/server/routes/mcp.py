"""MCP over streamable HTTP, at `/mcp`. The gate has authenticated the request; here its origin is checked."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from fastapi import Request
from pydantic import ConfigDict, StringConstraints
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from reflexio.errors import ForeignOrigin
from reflexio.models.loopback import is_loopback
from reflexio.models.wire import RequestModel
from reflexio.server.caller_headers import USER_HEADER, VERSION_HEADER, read_name
from reflexio.server.direct import Router
from reflexio.server.problems import MEDIA_TYPE
from reflexio.server.routes import get_reflexio
from reflexio.server.scopes import ANY_KEY

router = Router(tag="mcp")

ANSWERS: dict[int | str, dict[str, Any]] = {
    202: {"description": "A notification was taken."},
    400: {"description": "An error of JSON-RPC.", "content": {"application/json": {}, MEDIA_TYPE: {}}},
}


class McpResponse(Response):
    """The answer of the MCP server to one request."""

    def __init__(self, body: bytes, *, user_id: str, agent_version: str) -> None:
        super().__init__()
        self._request_body = body
        self._bound = {"user_id": user_id, "agent_version": agent_version}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Imported by the first request: a server that is asked for nothing starts as fast as before.
        from reflexio.mcp.http import answer_mcp

        await answer_mcp(scope["app"], scope, self._request_body, receive, send, **self._bound)


class McpMessage(RequestModel):
    """A request or a notification of JSON-RPC. A notification has no `id`."""

    # Built at once: FastAPI reads the body when it declares the route.
    model_config = ConfigDict(defer_build=False, extra="ignore", strict=True)

    jsonrpc: Literal["2.0"]
    method: Annotated[str, StringConstraints(min_length=1, max_length=1000)]
    id: int | str | None = None
    params: dict[str, Any] | None = None


@router.post("/mcp", response_model=dict[str, Any], responses=ANSWERS, openapi_extra=ANY_KEY)
async def mcp(request: Request, message: McpMessage) -> McpResponse:
    """The Model Context Protocol, streamable HTTP: tools, resources and prompts for a model inside another tool.

    Takes and answers JSON-RPC. What the scopes of the key do not permit is not listed, and refused.
    """
    origin = request.headers.get("origin")
    if origin is not None and not _is_allowed(origin, get_reflexio(request).settings.cors_origins):
        raise ForeignOrigin(origin=origin[:200])
    user_id, agent_version = (read_name(request, header) for header in (USER_HEADER, VERSION_HEADER))
    return McpResponse(await request.body(), user_id=user_id, agent_version=agent_version)


def _is_allowed(origin: str, cors_origins: Sequence[str]) -> bool:
    """Pages of this machine, and of origins that the operator named. A name that was bound anew stays foreign."""
    if origin in cors_origins:
        return True
    try:
        return is_loopback(urlsplit(origin).hostname or "")
    except ValueError:
        return False
