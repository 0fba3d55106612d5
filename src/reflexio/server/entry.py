"""What every call passes before its route: a request id, the caller's organisation, rate limits, the body limit."""

import re
from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reflexio.errors import TooLarge
from reflexio.models.identity import new_id
from reflexio.server.auth import Gate
from reflexio.server.body import Handler
from reflexio.server.limits import Limiter, name
from reflexio.server.problems import answer

OPEN = re.compile(r"/|/health(/live|/ready)?|/healthz|/meta/version|/docs|/redoc|/openapi\.json")
WATCHING = frozenset({"/api/learning_status", "/api/get_operation_status"})
"""Who watches the background work must not slow it down."""
NO_ROUTES: Mapping[tuple[str, str], Handler] = {}
SAFE_ID = re.compile(r"[\w.:-]{1,128}")


def _looked_at(scope: Scope) -> Scope:
    """Who only looks whether an open page is there has the same answer; the server leaves the page itself out."""
    is_look = scope["method"] == "HEAD" and OPEN.fullmatch(scope["path"])
    return {**scope, "method": "GET"} if is_look else scope


class Entry:
    """ASGI middleware. Health and documentation are open to everybody, all else has a caller.

    The busiest routes are answered from here: the router and what stands around it cost more than they do.
    """

    def __init__(
        self, app: ASGIApp, *, max_body_bytes: int, straight: Mapping[tuple[str, str], Handler] = NO_ROUTES
    ) -> None:
        self._app = app
        self._most = max_body_bytes
        self._straight = straight

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        request_id = given if SAFE_ID.fullmatch(given) else new_id()
        scope["request_id"] = request_id

        started = False

        async def stamped(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                MutableHeaders(scope=message)["X-Request-ID"] = request_id
            await send(message)

        try:
            await self._admit(scope, headers)
            receive = self._bounded(receive, headers)
            if handle := self._straight.get((scope["method"], scope["path"])):
                await (await handle(Request(scope, receive)))(scope, receive, stamped)
            else:
                await self._app(_looked_at(scope), receive, stamped)
        except Exception as error:
            if started:  # the router has answered, and the server writes its own log
                raise
            await (await answer(Request(scope), error))(scope, receive, stamped)

    async def _admit(self, scope: Scope, headers: Headers) -> None:
        if scope["method"] in ("GET", "HEAD", "OPTIONS") and OPEN.fullmatch(scope["path"]):
            return
        gate: Gate = scope["app"].state.gate
        limiter: Limiter = scope["app"].state.limiter
        if scope["path"] not in WATCHING:
            scope["app"].state.reflexio.traffic.record_call()
        peer = scope["client"][0] if scope.get("client") else ""
        scope["org_id"] = await gate.organisation(peer, headers)
        limiter.admit(f"{scope['org_id']} {peer}", name(scope["path"]))
        if headers.get("content-length", "").isdecimal() and int(headers["content-length"]) > self._most:
            raise TooLarge

    def _bounded(self, receive: Receive, headers: Headers) -> Receive:
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._most:
                raise TooLarge
            return message

        return counted
