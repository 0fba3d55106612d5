"""Every route declares the scope that it needs, or that it is open; one that does not stops the start."""

import pytest
from fastapi import APIRouter, FastAPI
from starlette.requests import Request

from reflexio.errors import NotPermitted
from reflexio.models.access import ALL_SCOPES, Caller, KeyScope
from reflexio.server.app import ROUTERS, create_app
from reflexio.server.direct import Router
from reflexio.server.scopes import OPEN, ScopedRoute, check_routes, needs, require
from reflexio.settings import Settings


async def hello() -> dict[str, str]:
    return {"hello": "you"}


def test_every_route_is_open_or_needs_a_scope() -> None:
    routes = [route for router in ROUTERS for route in router.routes]
    scopes = {route.path: route.scope for route in routes if isinstance(route, ScopedRoute)}
    assert len(scopes) == len({getattr(route, "path", "") for route in routes}) > 60
    assert {path for path, scope in scopes.items() if scope is None} - {"/api/whoami", "/mcp"} == {
        "/",
        "/docs",
        "/health",
        "/health/live",
        "/health/ready",
        "/healthz",
        "/meta/version",
        "/metrics",
    }
    assert {route.path for route in routes if isinstance(route, ScopedRoute) and route.is_open}.isdisjoint(
        {"/api/whoami", "/mcp"}
    )
    assert set(scopes.values()) == {None, *KeyScope}


@pytest.mark.parametrize("path", ["delete_all", "set_config", "update_config", "clear_user_data"])
def test_what_changes_the_rules_or_erases_everything_needs_admin(path: str) -> None:
    routes = [route for router in ROUTERS for route in router.routes if isinstance(route, ScopedRoute)]
    scopes = {route.scope for route in routes if path in route.path}
    assert scopes == {KeyScope.ADMIN}


def test_a_route_without_a_declaration_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="/api/new declares no scope"):
        Router(tag="test").get("/api/new")(hello)


def test_a_route_of_another_router_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    foreign = APIRouter()
    foreign.get("/api/foreign")(hello)
    monkeypatch.setattr("reflexio.server.app.ROUTERS", (*ROUTERS, foreign))
    with pytest.raises(TypeError, match="/api/foreign is answered without a check"):
        create_app(Settings())


@pytest.mark.parametrize(("path", "extra"), [("/api/free", OPEN), ("/health", needs(KeyScope.READ))])
def test_the_declaration_and_the_gate_agree_on_what_is_open(path: str, extra: dict[str, object]) -> None:
    router = Router(tag="test")
    router.get(path, openapi_extra=extra)(hello)
    with pytest.raises(TypeError, match="exactly if"):
        check_routes(FastAPI(), router.routes, lambda path: path == "/health")


@pytest.mark.parametrize("scope", KeyScope)
def test_no_scope_includes_another(scope: KeyScope) -> None:
    lacking = Request({"type": "http", "caller": Caller("acme", ALL_SCOPES - {scope})})
    with pytest.raises(NotPermitted, match=f"lacks the scope '{scope}'"):
        require(lacking, scope)
    require(Request({"type": "http", "caller": Caller("acme", frozenset({scope}))}), scope)
    require(Request({"type": "http", "caller": Caller("acme", frozenset())}), None)
