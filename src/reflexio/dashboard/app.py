"""The ASGI application of the pages. The server puts it in front of the API and says in `scope` who the visitor is."""

from collections.abc import Awaitable, Callable
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from reflexio.app import Reflexio
from reflexio.dashboard.navigation import Navigation
from reflexio.dashboard.pages import PAGES
from reflexio.dashboard.rendering import environment
from reflexio.dashboard.routing import PageRoute, local_path
from reflexio.dashboard.static_files import answer_static, static_files
from reflexio.dashboard.visit import Visit
from reflexio.errors import NotAuthorised, NotPermitted

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    # Not no-referrer: with it, browsers send `Origin: null` with forms, and over plain HTTP nothing else tells whence.
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Vary": "Accept, Cookie, HX-Request",
}
TITLES = {403: "Not permitted", 404: "Not here", 409: "Changed meanwhile", 413: "Too large", 422: "Not possible",
          429: "Too many requests", 500: "Our mistake", 503: "Not available now"}  # fmt: skip


async def _unused(_: Request) -> Response:
    raise AssertionError("Routes only match here; the page is called with its visit.")


class Dashboard:
    """All pages. `sign_in` gives the cookie of a session for a key, or None for a wrong key."""

    def __init__(self, parts: Reflexio, sign_in: Callable[[str], Awaitable[str | None]]) -> None:
        # What all pages share is read here, in the thread that builds the dashboard.
        environment().get_template("layout.html")
        static_files()
        self._parts = parts
        self._sign_in = sign_in
        self.routes: list[PageRoute] = [route for pages in PAGES for route in pages.routes]
        self._matchers = [(Route(route.path, _unused, methods=[route.method]), route) for route in self.routes]
        self._navigation = Navigation(self.routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["sign_in"] = self._sign_in
        request = Request(scope, receive)
        if request.url.path.startswith("/static"):
            await (answer_static(request) or Response(status_code=404))(scope, receive, send)
            return
        response = await self._answer(request)
        response.headers.update(HEADERS)
        await response(scope, receive, send)

    async def error(self, request: Request, status: int, detail: str) -> Response:
        """The page of an error. Who must sign in first is sent to do that."""
        response = self._error(request, status, detail)
        response.headers.update(HEADERS)
        return response

    def _error(self, request: Request, status: int, detail: str) -> Response:
        if status == 401:
            path = request.url.path
            target = f"{path}?{request.url.query}" if request.url.query else path
            where = f"/sign-in?next={quote(target, safe='')}" if request.method == "GET" and path != "/" else "/sign-in"
            if request.headers.get("hx-request"):
                return Response(status_code=204, headers={"HX-Redirect": "/sign-in"})
            if request.method == "GET" and request.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
                # Browsers keep a strict cookie back when another site's link leads here. Asked from here, they send it.
                visit = Visit(request, self._parts, self._navigation)
                return visit.page("again.html", target=local_path(target))
            return RedirectResponse(where, 303)
        visit = Visit(request, self._parts, self._navigation)
        if visit.is_partial:
            return visit.page("error_part.html", status=status, detail=detail)
        title = TITLES.get(status, "That did not work")
        return visit.page("error.html", status=status, title=title, detail=detail, code=status)

    async def _answer(self, request: Request) -> Response:
        route, allowed = self._match(request)
        if route is None:
            status, words = (405, "This page cannot be used so.") if allowed else (404, "There is no such page.")
            if request.scope["visitor"].caller is None:
                raise NotAuthorised
            return self._error(request, status, words)
        visit = Visit(request, self._parts, self._navigation)
        if route.scope is not None:
            if visit.visitor.caller is None:
                raise NotAuthorised
            if not visit.may(route.scope):
                raise NotPermitted(scope=route.scope.value)
        if route.method == "POST":
            await visit.check_form()
        return await route.answer(visit)

    def _match(self, request: Request) -> tuple[PageRoute | None, bool]:
        """The route of a request, and whether its path has routes of other methods."""
        is_known = False
        for matcher, route in self._matchers:
            match, child = matcher.matches(request.scope)
            if match is Match.FULL:
                request.scope.update(child)
                return route, True
            is_known = is_known or match is Match.PARTIAL
        return None, is_known
