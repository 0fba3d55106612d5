"""What every request passes before its route: a request id, authentication, rate limits and the body limit.

The gate calls direct routes (`server/direct.py`) and hands all other requests to FastAPI.
"""

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reflexio.errors import RateLimited, TooLarge
from reflexio.models.identity import new_id
from reflexio.server.authentication import Authenticator
from reflexio.server.direct import Handler
from reflexio.server.problems import error_response
from reflexio.server.proxies import came_through_proxy
from reflexio.settings import RateLimit

OPEN_PATHS = re.compile(r"/|/health(/live|/ready)?|/healthz|/metrics|/meta/version|/docs|/openapi\.json")
"""Health and documentation: no key is needed."""
POLLED_PATHS = frozenset({"/api/learning_status", "/api/get_operation_status"})
"""Calls that wait for background work do not count as traffic: they would delay that work."""
SAFE_ID = re.compile(r"[\w.:-]{1,128}")
MAX_BUCKETS = 100_000


def route_name(path: str) -> str:
    """The name of a route in REFLEXIO_RATE_LIMITS: the last part of its path."""
    return path.rpartition("/")[2]


class RateLimiter:
    """A token bucket per caller and limit. It fills steadily; each call takes one token."""

    def __init__(self, limits: Sequence[RateLimit], *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._monotonic = monotonic
        self._buckets: OrderedDict[tuple[str, RateLimit], tuple[float, float]] = OrderedDict()

    def admit(self, caller: str, route: str) -> None:
        """Raises RateLimited, and takes no token, when a limit that covers `route` is used up."""
        now = self._monotonic()
        keys = [(caller, limit) for limit in self._limits if limit.route in ("*", route)]
        levels = [(key, self._level(key, now)) for key in keys]
        for (_, limit), level in levels:
            if level < 1:
                raise RateLimited(retry_after=round((1 - level) * limit.seconds / limit.count, 3))
        for key, level in levels:
            self._buckets[key] = (now, level - 1)
            self._buckets.move_to_end(key)
        while len(self._buckets) > MAX_BUCKETS:
            self._buckets.popitem(last=False)

    def _level(self, key: tuple[str, RateLimit], now: float) -> float:
        limit = key[1]
        updated_at, level = self._buckets.get(key, (now, float(limit.count)))
        return min(float(limit.count), level + (now - updated_at) * limit.count / limit.seconds)


class RequestGate:
    """An ASGI application in front of FastAPI's. Errors that no route has answered become problem responses here."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        authenticator: Authenticator,
        limiter: RateLimiter,
        max_body_bytes: int,
        direct: Mapping[tuple[str, str], Handler],
        on_traffic: Callable[[], None],
    ) -> None:
        self._app = app
        self._authenticator = authenticator
        self._limiter = limiter
        self._max_body_bytes = max_body_bytes
        self._direct = direct
        self._on_traffic = on_traffic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        request_id = headers.get("x-request-id", "")
        if not SAFE_ID.fullmatch(request_id):
            request_id = new_id()
        scope["request_id"] = request_id
        started = False

        async def send_with_id(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                MutableHeaders(scope=message)["X-Request-ID"] = request_id
            await send(message)

        try:
            await self._admit(scope, headers)
            receive = limit_body(receive, headers, self._max_body_bytes)
            if handle := self._direct.get((scope["method"], scope["path"])):
                await (await handle(Request(scope, receive)))(scope, receive, send_with_id)
            else:
                await self._app(_head_as_get(scope), receive, send_with_id)
        except Exception as error:
            if started:  # FastAPI has sent its response, and uvicorn logs the error
                raise
            await (await error_response(Request(scope), error))(scope, receive, send_with_id)

    async def _admit(self, scope: Scope, headers: Headers) -> None:
        path = scope["path"]
        if scope["method"] in ("GET", "HEAD", "OPTIONS") and OPEN_PATHS.fullmatch(path):
            return
        if path not in POLLED_PATHS:
            self._on_traffic()
        peer = scope["client"][0] if scope.get("client") else ""
        address = "" if came_through_proxy(scope) else peer  # who is behind a proxy is unknown
        caller = await self._authenticator.authenticate(address, headers)
        scope["caller"] = caller
        self._limiter.admit(f"{caller.org_id} {peer}", route_name(path))


def limit_body(receive: Receive, headers: Headers, most_bytes: int) -> Receive:
    """Raises TooLarge for a body that declares too great a length, and counts the bytes of the others."""
    length = headers.get("content-length", "")
    if length.isdecimal() and int(length) > most_bytes:
        raise TooLarge
    received = 0

    async def receive_counted() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > most_bytes:
            raise TooLarge
        return message

    return receive_counted


def _head_as_get(scope: Scope) -> Scope:
    """HEAD requests of open paths get the headers of the GET response; uvicorn leaves its body out."""
    is_head = scope["method"] == "HEAD" and OPEN_PATHS.fullmatch(scope["path"])
    return {**scope, "method": "GET"} if is_head else scope
