"""Which paths are pages, what each page needs, and where a visitor may be sent. Imports nothing heavy."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlsplit

from reflexio.models.access import KeyScope

if TYPE_CHECKING:
    from starlette.responses import Response

    from reflexio.dashboard.visit import Visit

PLACES = frozenset({
    "static", "sign-in", "sign-out", "theme", "conversations", "learnings", "playbooks", "review", "optimisations",
    "playground", "versions", "operations", "settings", "status",
})  # fmt: skip
"""The first part of every path of the dashboard, besides "/"."""
SAFE_IN_PATH, SAFE_IN_QUERY = "/-._~!$&'()*+,;=:@%", "/-._~!$&'()*+,;=:@%?"


def is_page(method: str, path: str, accept: str) -> bool:
    """Whether the dashboard answers. Programs that ask for "/" get the API's index."""
    if path == "/":
        return method in ("GET", "HEAD") and "text/html" in accept
    return path.startswith("/") and path.split("/", 2)[1] in PLACES  # the path of `OPTIONS *` has no slash


def local_path(target: str) -> str:
    """The target if it is a page of this server, else "/".

    Browsers drop tabs and line breaks from addresses and take a backslash for a slash, so these and every other sign
    that has no place in an address are refused, and the path is put together anew from its parts.
    """
    if any(ord(letter) <= 32 or ord(letter) == 127 or letter == "\\" for letter in target):
        return "/"
    try:
        parts = urlsplit(target)
    except ValueError:
        return "/"
    is_ours = parts.path.startswith("/") and (parts.path == "/" or parts.path.split("/", 2)[1] in PLACES)
    if parts.scheme or parts.netloc or not is_ours or "//" in parts.path or "/." in parts.path:
        return "/"
    path, query = quote(parts.path, SAFE_IN_PATH), quote(parts.query, SAFE_IN_QUERY)
    return f"{path}?{query}" if query else path


Page = TypeVar("Page", bound="Callable[[Visit], Coroutine[Any, Any, Response]]")


@dataclass(frozen=True)
class PageRoute:
    """A page or an action: `scope` is what the visitor's key must have, None for what everybody may see."""

    method: str
    path: str
    scope: KeyScope | None
    answer: "Callable[[Visit], Coroutine[Any, Any, Response]]"


@dataclass
class Pages:
    """The pages of one module, as `@pages.get(path, scope)` declares them. Every `post` checks the form's token."""

    routes: list[PageRoute] = field(default_factory=list)

    def get(self, path: str, scope: KeyScope | None) -> Callable[[Page], Page]:
        return self._declare("GET", path, scope)

    def post(self, path: str, scope: KeyScope | None) -> Callable[[Page], Page]:
        return self._declare("POST", path, scope)

    def _declare(self, method: str, path: str, scope: KeyScope | None) -> Callable[[Page], Page]:
        if path != "/" and path.split("/", 2)[1] not in PLACES:
            raise TypeError(f"{path} is no path of the dashboard: add its first part to PLACES.")

        def declare(answer: Page) -> Page:
            self.routes.append(PageRoute(method, path, scope, answer))
            return answer

        return declare
