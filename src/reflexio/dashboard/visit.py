"""One request for a page: who looks, what was asked, and the ways to answer."""

from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from starlette.datastructures import ImmutableMultiDict
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

import reflexio
from reflexio.app import Reflexio
from reflexio.dashboard.navigation import Navigation
from reflexio.dashboard.rendering import render
from reflexio.dashboard.routing import local_path
from reflexio.dashboard.sessions import Visitor
from reflexio.errors import InvalidRequest, NotFound, NotPermitted
from reflexio.models.access import Caller, KeyScope
from reflexio.models.paging import Position
from reflexio.ports.storage import Store

MESSAGE_COOKIE, THEME_COOKIE = "reflexio_message", "reflexio_theme"
TOKEN_FIELD = "form_token"  # noqa: S105 - the name of a field
MESSAGE_SECONDS, LONGEST_MESSAGE = 60, 500
MOST_FIELDS = 2_000
THEMES = ("light", "dark")
Form = ImmutableMultiDict[str, str]


class FormRefused(NotPermitted):
    """This form did not come from a page of this server, or is older than the server. Open the page again and repeat
    what you did; nothing was changed."""


class Visit:
    """A request for a page. `parts` is the running Reflexio, `now` the second of the request."""

    def __init__(self, request: Request, parts: Reflexio, navigation: Navigation) -> None:
        self.request = request
        self.parts = parts
        self.now = parts.clock.now()
        self.visitor: Visitor = request.scope["visitor"]
        self._navigation = navigation
        self._form: Form | None = None

    @property
    def caller(self) -> Caller:
        assert self.visitor.caller is not None
        return self.visitor.caller

    @cached_property
    def store(self) -> Store:
        """The rows of the visitor's organisation."""
        return self.parts.database.of(self.caller.org_id)

    @property
    def is_partial(self) -> bool:
        """Whether htmx asks for a part of a page."""
        return self.request.headers.get("hx-request") == "true" and "hx-boosted" not in self.request.headers

    @property
    def path(self) -> str:
        return self.request.url.path

    def may(self, scope: KeyScope | str) -> bool:
        return scope in self.visitor.scopes

    def require(self, scope: KeyScope) -> None:
        if not self.may(scope):
            raise NotPermitted(scope=scope.value)

    def has_page(self, path: str) -> bool:
        """Whether a page of this path without parameters is there for this visitor."""
        return self._navigation.has(self, urlsplit(path).path)

    def asked(self, name: str, default: str = "") -> str:
        """A parameter of the address. No database takes NUL characters."""
        return self.request.query_params.get(name, default).replace("\0", "").strip()

    def asked_number(self, name: str) -> int:
        """A parameter that is a number; 0 when it is none."""
        text = self.asked(name)
        return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else 0

    @property
    def cursor(self) -> str | None:
        """The place in a list that the address names; what is no cursor of ours begins at the newest row."""
        cursor = self.asked("cursor")
        with suppress(ValueError):
            return Position.read(cursor).cursor() if cursor else None
        return None

    def part(self, name: str) -> str:
        """A part of the path."""
        return str(self.request.path_params[name]).replace("\0", "")

    def number(self, name: str, what: str) -> int:
        """A part of the path that is the number of a row. Raises NotFound when it cannot be one."""
        text = self.part(name)
        if not (text.isascii() and text.isdecimal()) or len(text) > 18:
            raise NotFound(what=what, id=text[:50])
        return int(text)

    async def form(self) -> Form:
        """The fields of a form, after the check of its token (see `check_form`)."""
        if self._form is None:
            body = await self.request.body()
            try:
                pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS)
            except ValueError:
                raise InvalidRequest("The form cannot be read.") from None
            self._form = ImmutableMultiDict([(name, _plain(value)) for name, value in pairs])
        return self._form

    async def check_form(self) -> None:
        """Raises FormRefused unless a page of ours sent the form."""
        if not is_same_origin(self.request.headers):
            raise FormRefused(scope="")
        if self.visitor.caller and not self.visitor.is_own_token((await self.form()).get(TOKEN_FIELD, "")):
            raise FormRefused(scope="")

    def page(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """A whole page, or the part of it that htmx asked for when the template has one."""
        message = self.visitor.read_message(unquote(self.request.cookies.get(MESSAGE_COOKIE, "")))
        common = {
            "visit": self,
            "now": self.now,
            "may": self.may,
            "message": message,
            "theme": self.theme,
            "version": reflexio.__version__,
            "navigation": self._navigation.of(self),
            "form_token": self.visitor.form_token,
        }
        response = HTMLResponse(render(template, {**common, **values}), status_code=status)
        if MESSAGE_COOKIE in self.request.cookies:
            response.delete_cookie(MESSAGE_COOKIE)
        return response

    def go(self, path: str, message: str = "", *, anchor: str = "") -> Response:
        """Sends the browser to another page of ours, which shows the message."""
        response: Response
        target = local_path(path) + (f"#{anchor}" if anchor else "")
        if self.is_partial:
            response = Response(status_code=204, headers={"HX-Redirect": target})
        else:
            response = RedirectResponse(target, 303)
        if message:
            signed = self.visitor.sign_message(message[:LONGEST_MESSAGE])
            self.set_cookie(response, MESSAGE_COOKIE, quote(signed), MESSAGE_SECONDS)
        return response

    def set_cookie(self, response: Response, name: str, value: str, seconds: int) -> None:
        response.set_cookie(
            name, value, max_age=seconds, httponly=True, samesite="strict", secure=is_https(self.request)
        )

    @property
    def theme(self) -> str:
        """ "light" or "dark", or empty when the system decides."""
        theme = self.request.cookies.get(THEME_COOKIE, "")
        return theme if theme in THEMES else ""


def _plain(text: str) -> str:
    """Browsers send line ends as CR LF; no database takes NUL characters."""
    return text.replace("\r\n", "\n").replace("\0", "")


def is_same_origin(headers: Mapping[str, str]) -> bool:
    """Whether a page of this server sent the request. Only browsers send these headers, and no script can set them."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = headers.get("origin", "")
    return bool(origin) and urlsplit(origin).netloc == headers.get("host")


def is_https(request: Request) -> bool:
    """Whether the browser speaks https, maybe to a proxy. A wrong answer only makes its own cookie unusable."""
    forwarded = request.headers.get("x-forwarded-proto", "")
    origin = request.headers.get("origin", "")
    return request.url.scheme == "https" or forwarded == "https" or origin.startswith("https://")
