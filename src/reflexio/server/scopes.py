"""The scope that each route needs. It is declared with the route, documented in OpenAPI, and checked before the body.

A route without a declaration cannot be made, so a new route is never open by mistake.
"""

from collections.abc import Callable, Iterable
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.routing import BaseRoute

from reflexio.errors import NotPermitted
from reflexio.models.access import Caller, KeyScope

SCHEME = "key"
"""The name of the way to send a key in the OpenAPI document."""
OPEN: dict[str, Any] = {"security": []}
"""Declares a route that needs no key."""
ANY_KEY: dict[str, Any] = {"security": [{SCHEME: []}, {}]}
"""Declares a route that takes a key with any scope: what it answers depends on the scopes."""


def needs(scope: KeyScope) -> dict[str, Any]:
    """Declares the scope of a route, for its `openapi_extra`. A server without keys serves its machine without one."""
    return {"security": [{SCHEME: [scope.value]}, {}]}


def declared_scope(route: APIRoute) -> KeyScope | None:
    """The scope that a route needs; None when it is open or takes any key. Raises TypeError without a declaration."""
    security = (route.openapi_extra or {}).get("security")
    if security is None:
        raise TypeError(f"{route.path} declares no scope: give it openapi_extra=needs(...), ANY_KEY or OPEN.")
    scopes = security[0][SCHEME] if security else []
    return KeyScope(scopes[0]) if scopes else None


def get_caller(request: Request) -> Caller:
    """For whom the request speaks."""
    caller: Caller = request.scope["caller"]
    return caller


def require(request: Request, scope: KeyScope | None) -> None:
    """Raises NotPermitted when the caller's key has not this scope. None is needed for an open route and any key."""
    if scope is not None and scope not in get_caller(request).scopes:
        raise NotPermitted(scope=scope.value)


class ScopedRoute(APIRoute):
    """A route that checks the scope it declares."""

    @property
    def scope(self) -> KeyScope | None:
        return declared_scope(self)

    @property
    def is_open(self) -> bool:
        """Whether the route needs no key."""
        return (self.openapi_extra or {}).get("security") == []


def check_routes(app: FastAPI, routes: Iterable[BaseRoute], is_open: Callable[[str], bool]) -> None:
    """Raises TypeError when a route checks no scope, or is declared open although callers need a key for it."""
    for route in routes:
        # Depending on its version, FastAPI wraps included routers in a route without a path.
        path = getattr(route, "path", "")
        if isinstance(route, ScopedRoute):
            if route.is_open != is_open(path):
                raise TypeError(f"{path} must be declared OPEN exactly if the request gate lets everybody pass.")
        elif path and path != app.openapi_url:
            raise TypeError(f"{path} is answered without a check of its scope: declare it on a Router of ours.")
