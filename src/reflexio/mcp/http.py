"""MCP over streamable HTTP: one session for each request, so that each request is authenticated by itself.

The tools call the application again, inside the process, as the same caller: the key, the scopes, the limits and the
checks of a route are those of a call from outside.
"""

import asyncio
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

import httpx
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reflexio.client.aio import AsyncReflexioClient
from reflexio.mcp.access import MemoryAccess

OWN_HEADERS = frozenset({b"content-type", b"idempotency-key", b"accept"})
"""Headers of an inner call that come from the client. All others are those of the outer request."""
NOT_PASSED = OWN_HEADERS | {b"content-length", b"transfer-encoding", b"expect", b"x-request-id"}
INNER_URL = "http://reflexio.invalid"


class InnerCalls(httpx.AsyncBaseTransport):
    """Calls an application as the caller of an outer request: same connection, same key."""

    def __init__(self, app: ASGIApp, outer: Scope) -> None:
        self._app = app
        self._outer = outer

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        body = await request.aread()
        scope = self._scope(request, body)
        answer: dict[str, Any] = {}
        parts: list[bytes] = []
        is_sent = False

        async def receive() -> Message:
            nonlocal is_sent
            if is_sent:
                return {"type": "http.disconnect"}
            is_sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer.update(status=message["status"], headers=message.get("headers", ()))
            else:
                parts.append(message.get("body", b""))

        await self._app(scope, receive, send)
        headers = [(name, value) for name, value in answer["headers"] if name != b"content-length"]
        return httpx.Response(answer["status"], headers=headers, content=b"".join(parts))

    def _scope(self, request: httpx.Request, body: bytes) -> Scope:
        own = [(name.lower(), value) for name, value in request.headers.raw if name.lower() in OWN_HEADERS]
        passed = [(name, value) for name, value in self._outer["headers"] if name not in NOT_PASSED]
        return {
            "type": "http",
            **{name: self._outer[name] for name in ("asgi", "http_version", "scheme", "server", "client")},
            "root_path": "",
            "method": request.method,
            "path": request.url.path,
            "raw_path": request.url.raw_path.partition(b"?")[0],
            "query_string": request.url.query,
            "headers": [
                *passed,
                *own,
                (b"content-length", str(len(body)).encode()),
                (b"x-request-id", str(self._outer["request_id"]).encode()),
            ],
        }


async def answer_mcp(
    app: ASGIApp, scope: Scope, body: bytes, receive: Receive, send: Send, *, user_id: str, agent_version: str
) -> None:
    """Answers one request of the protocol. `app` is the whole application with its request gate."""
    manager_for = await _load()
    calls = InnerCalls(app, scope)
    async with AsyncReflexioClient(url_endpoint=INNER_URL, transport=calls, retries=0) as client:
        manager = manager_for(MemoryAccess(client, user_id, agent_version, reviewer=user_id), len(body) + 1)
        async with manager.run():
            await manager.handle_request(scope, _replay(body, receive), send)


async def _load() -> Callable[[MemoryAccess, int], Any]:
    """Loads the SDK when it is first used, beside the event loop: it takes half a second."""
    await asyncio.to_thread(import_module, "mcp.server.streamable_http_manager")
    await asyncio.to_thread(import_module, "reflexio.mcp.session")
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from reflexio.mcp.session import create_server

    def manager(access: MemoryAccess, max_bytes: int) -> StreamableHTTPSessionManager:
        return StreamableHTTPSessionManager(
            create_server(access), json_response=True, stateless=True, max_request_body_size=max_bytes
        )

    return manager


def _replay(body: bytes, receive: Receive) -> Callable[[], Awaitable[Message]]:
    """A body that was read already, and then what the connection says."""
    is_read = False

    async def replay() -> Message:
        nonlocal is_read
        if is_read:
            return await receive()
        is_read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
