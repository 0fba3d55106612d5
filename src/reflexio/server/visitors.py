"""Puts the dashboard in front of the API: who a browser speaks for, rate limits, the body limit, and error pages."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.requests import Request, cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reflexio.app import Reflexio
from reflexio.dashboard.routing import is_page
from reflexio.dashboard.sessions import COOKIE, BrowserSession, Visitor
from reflexio.errors import NotAuthorised, NotPermitted
from reflexio.models.identity import new_id
from reflexio.server.authentication import Authenticator
from reflexio.server.problems import error_words
from reflexio.server.proxies import came_through_proxy
from reflexio.server.request_gate import RateLimiter, limit_body, route_name

if TYPE_CHECKING:
    from reflexio.dashboard.app import Dashboard

MAX_FORM_BYTES = 2 * 1024 * 1024
SignIn = Callable[[str], Awaitable[str | None]]
OPEN_TO_ALL = ("/sign-in", "/sign-out", "/theme")


class PageGate:
    """An ASGI application that answers pages, and hands everything else to the API."""

    def __init__(self, api: ASGIApp, parts: Reflexio, authenticator: Authenticator, limiter: RateLimiter) -> None:
        self._api = api
        self._parts = parts
        self._authenticator = authenticator
        self._limiter = limiter
        # Keys the forms of people without a session. After a restart they are told to open the page again.
        self._secret = secrets.token_hex(32)
        self._dashboard: Dashboard | None = None
        self._loading = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        if not is_page(scope["method"], scope["path"], headers.get("accept", "")):
            await self._api(scope, receive, send)
            return
        dashboard = await self._load()
        scope["visitor"] = Visitor(None, self._secret)
        scope["request_id"] = new_id()
        is_started = False

        async def send_noted(message: Message) -> None:
            nonlocal is_started
            is_started = True
            await send(message)

        try:
            if not scope["path"].startswith("/static"):
                await self._admit(scope, headers)
            receive = limit_body(receive, headers, MAX_FORM_BYTES)
            await dashboard(scope, receive, send_noted)
        except Exception as error:
            if is_started:
                raise
            status, words = error_words(Request(scope), error)
            response = await dashboard.error(Request(scope), status, words)
            await response(scope, receive, send)

    async def _load(self) -> "Dashboard":
        async with self._loading:
            if self._dashboard is None:
                self._dashboard = await asyncio.to_thread(_build_dashboard, self._parts, self._sign_in)
            return self._dashboard

    async def _admit(self, scope: Scope, headers: Headers) -> None:
        peer = scope["client"][0] if scope.get("client") else ""
        address = "" if came_through_proxy(scope) else peer
        try:
            scope["visitor"] = await self._find_visitor(address, headers)
        except NotPermitted:
            raise
        except NotAuthorised as error:
            # Who needs a key may still open the form that takes it.
            if type(error) is not NotAuthorised or scope["path"] not in OPEN_TO_ALL:
                raise
        caller = scope["visitor"].caller
        self._limiter.admit(f"{caller.org_id if caller else ''} {peer}", route_name(scope["path"]))

    async def _find_visitor(self, address: str, headers: Headers) -> Visitor:
        """A session says it; a server without keys serves its machine; a bearer token works as for the API."""
        cookie = cookie_parser(headers.get("cookie", "")).get(COOKIE, "")
        if session := BrowserSession.read(cookie):
            digest = await self._authenticator.digest_of(session.key_id)
            if digest and session.is_valid(digest, self._parts.clock.now()):
                caller = await self._authenticator.caller_of(digest)
                if caller:
                    return Visitor(caller, session.secret(digest), is_signed_in=True)
        return Visitor(await self._authenticator.authenticate(address, headers), self._secret)

    async def _sign_in(self, token: str) -> str | None:
        found = await self._authenticator.key_of(token)
        if found is None:
            return None
        key_id, digest = found
        return BrowserSession.start(key_id, digest, self._parts.clock.now()).cookie


def _build_dashboard(parts: Reflexio, sign_in: SignIn) -> "Dashboard":
    # Imported by the first visitor: a server that nobody looks at starts as fast as before.
    from reflexio.dashboard.app import Dashboard

    return Dashboard(parts, sign_in)
