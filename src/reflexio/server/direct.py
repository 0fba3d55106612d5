"""How a request reaches its route function: directly, or through FastAPI.

Every route says which: `@router.direct("POST", path)` is answered here, `@router.get(path)` and its like by FastAPI.
Both read query and body by the same rules. Errors become responses in `problems`.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from typing import Any, TypeVar

import orjson
from fastapi import APIRouter
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from reflexio.models.access import KeyScope
from reflexio.models.wire import is_deeper
from reflexio.server.body_limits import check_fields, check_values
from reflexio.server.scopes import ScopedRoute, needs, require

MAX_BODY_DEPTH = 64
"""Levels of lists and objects in a body. No request of ours comes near."""
LONG_BODY = 100_000
"""Bytes of a body that is parsed beside the event loop: the largest takes a second."""
MOST_ERRORS = 1000
"""Faults of a body that are listed."""
Handler = Callable[[Request], Coroutine[Any, Any, Response]]
Endpoint = TypeVar("Endpoint", bound=Callable[..., Coroutine[Any, Any, BaseModel]])


async def read_body(request: Request) -> bytes:
    """The whole body. A body that is not declared as JSON is a 415."""
    try:
        body = await request.body()
    except ClientDisconnect:
        raise HTTPException(400, "The caller went away before the body was complete.") from None
    if body and not _is_json(request.headers.get("content-type", "")):
        raise HTTPException(415, "The body must be JSON, sent with Content-Type: application/json.")
    return body


def check_query(request: Request, known: Collection[str]) -> None:
    """Refuses parameters that the route does not have: a filter that is passed over would answer for everybody."""
    names = f"known are {', '.join(sorted(known))}" if known else "this route has none"
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        msg = f"unknown query parameter; {names}"
        errors = [
            {"type": "extra_forbidden", "loc": ("query", name[:100]), "msg": msg} for name in sorted(set(unknown))
        ]
        raise RequestValidationError(errors)


def parse_json(body: bytes) -> Any:
    """Parses a body and refuses what a database cannot hold: lone surrogates, NUL characters, bottomless nesting.

    Refuses masses of small values as well, which would keep everybody waiting.
    """
    check_values(body)
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise HTTPException(400, f"The body is not valid JSON: {error}") from None
    check_fields(body, parsed)
    # Most bodies have few brackets and no escaped NUL: only the others are searched through.
    if body.count(b"[") + body.count(b"{") > MAX_BODY_DEPTH and is_deeper(parsed, MAX_BODY_DEPTH):
        raise HTTPException(422, f"The body is nested deeper than {MAX_BODY_DEPTH} levels.")
    if b"\\u0000" in body and _holds_nul(parsed):
        raise HTTPException(422, "Texts must not contain NUL characters.")
    return parsed


def _is_json(content_type: str) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))


def _holds_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any(_holds_nul(key) or _holds_nul(item) for key, item in value.items())
    return isinstance(value, list) and any(map(_holds_nul, value))


class JsonRequest(Request):
    """A request whose body FastAPI parses by our rules."""

    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            self._json = parse_json(await self.body())
        return self._json


class JsonRoute(ScopedRoute):
    """A route that FastAPI answers: one with parameters in the path or query, or without a body."""

    def get_route_handler(self) -> Handler:
        handle = super().get_route_handler()
        scope = self.scope
        known = frozenset(name for field in self.dependant.query_params for name in _query_names(field))

        async def answer(request: Request) -> Response:
            require(request, scope)
            request = JsonRequest(request.scope, request.receive)
            check_query(request, known)
            # Read here: FastAPI takes every error while reading, such as a body too large, for bad JSON.
            await read_body(request)
            return await handle(request)

        return answer


class RawRoute(ScopedRoute):
    """A route that takes any query and body, for a server behind this one. Its function answers the whole request."""

    def get_route_handler(self) -> Handler:
        scope, endpoint = self.scope, self.endpoint

        async def answer(request: Request) -> Response:
            require(request, scope)
            response: Response = await endpoint(request)
            return response

        return answer


class DirectRoute(ScopedRoute):
    """A route that is answered without FastAPI. Its function takes the request and a body, and returns a model.

    FastAPI only documents it. FastAPI's router, dependencies and serialisation take 0.39 ms for a publish of four
    turns, the handler below 0.08 ms (measured without storage); the whole publish takes 1 to 2 ms. The body model
    validates the JSON text itself, and the response model writes it.
    """

    def get_route_handler(self) -> Handler:
        scope, endpoint, exclude_none = self.scope, self.endpoint, self.response_model_exclude_none
        takes = self.dependant
        parameters = takes.path_params + takes.query_params + takes.header_params
        models = [*(field.field_info.annotation for field in takes.body_params), self.response_model]
        if parameters or takes.dependencies or len(models) != 2 or not all(map(_is_model, models)):
            raise TypeError(f"{self.path} cannot be direct: it must take a request and one model, and return a model.")
        body_model: type[BaseModel] = models[0]
        documented = (self.openapi_extra or {}).get("parameters", ())
        known = frozenset(parameter["name"] for parameter in documented if parameter["in"] == "query")

        async def answer(request: Request) -> Response:
            require(request, scope)
            check_query(request, known)
            body = await read_body(request)
            if not body:
                raise RequestValidationError([{"type": "missing", "loc": ("body",), "msg": "Field required"}])
            if len(body) > LONG_BODY:
                # Other callers are answered meanwhile.
                parsed = await asyncio.to_thread(_parse, body_model, body)
            else:
                parsed = _parse(body_model, body)
            result: BaseModel = await endpoint(request, parsed)
            content = result.__pydantic_serializer__.to_json(result, exclude_none=exclude_none)
            return Response(content, media_type="application/json")

        return answer


def _parse(body_model: type[BaseModel], body: bytes) -> BaseModel:
    parse_json(body)
    try:
        # Strict, from JSON: a number is no text and "yes" is no boolean, but a date may be written as text.
        return body_model.model_validate_json(body, strict=True)
    except ValidationError as invalid:
        if invalid.error_count() > MOST_ERRORS:
            raise HTTPException(422, f"The body has {invalid.error_count():,} faults, too many to list.") from None
        errors = [{**error, "loc": ("body", *error["loc"])} for error in invalid.errors()]
        raise RequestValidationError(errors) from None


def _query_names(field: Any) -> Iterable[str]:
    """The names of a parameter, or of the fields of a model whose fields are parameters."""
    annotation = field.field_info.annotation
    return annotation.model_fields if _is_model(annotation) else (field.alias,)


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


class Router(APIRouter):
    """An APIRouter on which each route declares who answers it."""

    def __init__(self, *, tag: str, prefix: str = "") -> None:
        super().__init__(prefix=prefix, tags=[tag], route_class=JsonRoute)

    def direct(
        self, method: str, path: str, scope: KeyScope, *, parameters: Sequence[dict[str, Any]] = ()
    ) -> Callable[[Endpoint], Endpoint]:
        """Declares a direct route, the scope that it needs, and the parameters that it reads by itself.

        Fields of the response that are None are left out.
        """

        def declare(endpoint: Endpoint) -> Endpoint:
            self.add_api_route(
                path,
                endpoint,
                methods=[method],
                response_model_exclude_none=True,
                openapi_extra={**needs(scope), **({"parameters": [*parameters]} if parameters else {})},
                route_class_override=DirectRoute,
            )
            return endpoint

        return declare


def direct_handlers(routers: Iterable[APIRouter]) -> dict[tuple[str, str], Handler]:
    """The handlers of all direct routes, by method and path."""
    routes = [route for router in routers for route in router.routes if isinstance(route, DirectRoute)]
    return {(method, route.path): route.get_route_handler() for route in routes for method in route.methods or ()}
