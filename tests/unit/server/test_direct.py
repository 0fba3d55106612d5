"""Direct routes answer as FastAPI would, and every route declares who answers it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict

from reflexio.models.access import KeyScope
from reflexio.models.wire import RequestModel, ResponseModel
from reflexio.server.app import ROUTERS, create_app
from reflexio.server.direct import DirectRoute, JsonRoute, RawRoute, Router, direct_handlers
from reflexio.server.scopes import needs
from reflexio.settings import Settings
from tests.builders import problem


class Greeting(RequestModel):
    model_config = ConfigDict(defer_build=False)

    name: str
    times: int = 1


class Greeted(ResponseModel):
    text: str
    note: str | None = None


async def greet(request: Request, body: Greeting) -> Greeted:
    return Greeted(text=f"{request.url.path.rpartition('/')[2]} {body.name}"[:200])


WRONG_BODIES: dict[str, tuple[bytes, str, int]] = {
    "no body": (b"", "application/json", 422),
    "not JSON": (b"{", "application/json", 400),
    "a lone surrogate": (b'{"name": "\\ud800"}', "application/json", 400),
    "another media type": (b'{"name": "Ada"}', "text/plain", 415),
    "no media type": (b'{"name": "Ada"}', "", 415),
    "a missing field": (b"{}", "application/json", 422),
    "an unknown field": (b'{"name": "Ada", "age": 36}', "application/json", 422),
    "a number for a text": (b'{"name": 1}', "application/json", 422),
    "a word for a number": (b'{"name": "Ada", "times": "twice"}', "application/json", 422),
    "a list for an object": (b"[]", "application/json", 422),
    "null": (b"null", "application/json", 422),
    "deep nesting": (b'{"name": ' + b"[" * 80 + b"]" * 80 + b"}", "application/json", 422),
    "a NUL character": (b'{"name": "\\u0000"}', "application/json", 422),
}


@pytest.fixture
async def http(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[httpx.AsyncClient]:
    """The application with one more function behind two routes: one direct, one answered by FastAPI."""
    router = Router(tag="test")
    router.direct("POST", "/direct", KeyScope.READ)(greet)
    router.post("/fastapi", response_model_exclude_none=True, openapi_extra=needs(KeyScope.READ))(greet)
    monkeypatch.setattr("reflexio.server.app.ROUTERS", (*ROUTERS, router))
    app = create_app(Settings(data=tmp_path))
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app, client=("127.0.0.1", 9))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            yield http


async def _post(http: httpx.AsyncClient, path: str, body: bytes, media_type: str) -> httpx.Response:
    headers = {"Content-Type": media_type, "X-Request-ID": "same"}
    return await http.post(path, content=body, headers={name: text for name, text in headers.items() if text})


async def test_both_ways_answer_wrong_bodies_alike(http: httpx.AsyncClient) -> None:
    for name, (body, media_type, status) in WRONG_BODIES.items():
        direct, fastapi = [await _post(http, path, body, media_type) for path in ("/direct", "/fastapi")]
        details = problem(direct, status), problem(fastapi, status)
        fields = [[error["loc"] for error in answer.json().get("errors", [])] for answer in (direct, fastapi)]
        assert fields[0] == fields[1], name
        # In strict mode pydantic words the errors of some fields differently.
        assert fields[0] or details[0] == details[1], name
        assert set(direct.headers) == set(fastapi.headers), name


async def test_both_ways_answer_right_bodies_alike(http: httpx.AsyncClient) -> None:
    answers = [await _post(http, path, b'{"name": "Ada"}', "application/json") for path in ("/direct", "/fastapi")]
    assert [answer.json() for answer in answers] == [{"text": "direct Ada"}, {"text": "fastapi Ada"}]
    assert {answer.headers["content-type"] for answer in answers} == {"application/json"}


def _routes() -> list[APIRoute]:
    return [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]


def test_every_route_is_declared_direct_or_is_answered_by_fastapi() -> None:
    kinds = {type(route) for router in ROUTERS for route in router.routes}
    assert kinds == {DirectRoute, JsonRoute, RawRoute}


def test_exactly_the_declared_routes_bypass_fastapi() -> None:
    declared = {
        (method, route.path) for route in _routes() if isinstance(route, DirectRoute) for method in route.methods or ()
    }
    assert set(direct_handlers(ROUTERS)) == declared
    assert ("POST", "/api/publish_interaction") in declared
    assert not {path for _, path in declared} & {"/api/run_playbook_aggregation", "/api/set_config", "/health"}


def test_every_route_with_one_model_in_and_one_out_is_direct() -> None:
    def is_model(kind: Any) -> bool:
        return isinstance(kind, type) and issubclass(kind, BaseModel)

    for route in _routes():
        needs = route.dependant
        body = [field.field_info.annotation for field in needs.body_params]
        others = (*needs.path_params, *needs.query_params, *needs.header_params)
        could_be = len(body) == 1 and not others and all(map(is_model, (*body, route.response_model)))
        assert isinstance(route, DirectRoute) == could_be, route.path


async def test_every_direct_route_refuses_an_unknown_field(http: httpx.AsyncClient) -> None:
    for method, path in direct_handlers(ROUTERS):
        answer = await http.request(method, path, json={"no_such_field": 1})
        problem(answer, 422)
        assert ["body", "no_such_field"] in [error["loc"] for error in answer.json()["errors"]], path


def test_a_route_that_cannot_be_direct_is_refused_when_it_is_declared() -> None:
    async def with_parameter(request: Request, body: Greeting, loud: bool) -> Greeted:
        raise NotImplementedError

    async def without_body(request: Request) -> Greeted:
        raise NotImplementedError

    for endpoint in (with_parameter, without_body):
        with pytest.raises(TypeError, match="/x cannot be direct"):
            Router(tag="test").direct("POST", "/x", KeyScope.READ)(endpoint)


def test_a_router_of_another_kind_has_no_direct_routes() -> None:
    assert direct_handlers([APIRouter()]) == {}
