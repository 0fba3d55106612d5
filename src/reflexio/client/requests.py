"""Requests from what a caller passes: request models, HTTP requests, signatures, and calls bound to a session.

Which keywords there are is decided by the request models. `fields.py` is generated from them.
"""

import asyncio
import functools
import inspect
import json
import re
from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack, get_args, get_origin, get_type_hints, overload

import httpx
from pydantic import BaseModel, ValidationError

from reflexio.client import fields as generated
from reflexio.client.endpoint import Endpoint
from reflexio.errors import InvalidRequest

if TYPE_CHECKING:
    from reflexio.client.aio import AsyncReflexioClient
    from reflexio.client.sync import ReflexioClient

B = TypeVar("B", bound=BaseModel)
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

CONNECT_SECONDS = 5.0
NO_FIELDS: Mapping[str, object] = MappingProxyType({})
NO_HEADERS: Mapping[str, str] = MappingProxyType({})
UNSENDABLE = re.compile(r"[^\t\x20-\x7e]")


def build_request(model: type[B], fields: Mapping[str, object] = NO_FIELDS, /, **named: object) -> B:
    """A request from the parameters that a method names and the keywords it passes on in `fields`.

    None stands for the model's default. A time without a zone is local time. A whole `request` takes the place of
    everything else; where it is a keyword, it may also be the first parameter. Raises TypeError for unknown keywords.
    """
    known = _keywords(model)
    if unknown := fields.keys() - known:
        raise TypeError(f"got an unexpected keyword argument {min(unknown)!r}; known are {', '.join(sorted(known))}")
    first = next(iter(named.values()), None) if "request" in known else None
    whole = first if isinstance(first, Mapping | model) else named.get("request", fields.get("request"))
    if isinstance(whole, model):
        return whole
    values = whole if isinstance(whole, Mapping) else {**named, **fields}
    try:
        return model.model_validate({name: _zoned(value) for name, value in values.items() if value is not None})
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors()]
        raise InvalidRequest("; ".join(problems)) from error


@functools.cache
def _keywords(model: type[BaseModel]) -> frozenset[str]:
    fields = getattr(generated, f"{model.__name__.removesuffix('Request')}Fields", None)
    return fields.__optional_keys__ if fields else frozenset()


def _zoned(value: object) -> object:
    return value.astimezone() if isinstance(value, datetime) and value.tzinfo is None else value


def as_json(value: Any) -> Any:
    """Settings inside dicts and lists as JSON, with their secrets: the server stores them."""
    if isinstance(value, dict):
        return {key: as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, BaseModel):
        # Without warnings: the server validates dicts that were put into a list of settings.
        return value.model_dump(mode="json", exclude_unset=True, context={"reveal": True}, warnings=False)
    return value


def as_query(request: BaseModel) -> dict[str, Any]:
    """What the caller set, as parameters of a URL."""
    return request.model_dump(mode="json", exclude_none=True, exclude_unset=True)


def prepare(
    endpoint: Endpoint,
    method: str,
    path: str,
    *,
    body: BaseModel | dict[str, Any] | None = None,
    params: Mapping[str, Any] = NO_FIELDS,
    headers: Mapping[str, str] = NO_HEADERS,
    seconds: float,
) -> httpx.Request:
    """The HTTP request. A query parameter that is None is left out."""
    headers = {"Content-Type": "application/json", **endpoint.headers, **headers}
    for name, value in headers.items():
        if UNSENDABLE.search(value):
            raise InvalidRequest(f"{name} may hold printable ASCII characters only.")
    query = {name: value for name, value in params.items() if value is not None}
    timeout = httpx.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS)).as_dict()
    try:
        url = f"{endpoint.url}{path}" + (f"?{httpx.QueryParams(query)}" if query else "")
        content = _encode(body)
        return httpx.Request(method, url, headers=headers, content=content, extensions={"timeout": timeout})
    except (httpx.InvalidURL, ValueError, TypeError, RecursionError) as error:
        raise InvalidRequest(f"This cannot be sent: {error}") from error


def _encode(body: BaseModel | dict[str, Any] | None) -> bytes:
    """Only what the caller set: with defaults such as the time in it, the same call a second later would differ."""
    if isinstance(body, BaseModel):
        return body.__pydantic_serializer__.to_json(body, exclude_none=True, exclude_unset=True)
    return b"" if body is None else json.dumps(body, allow_nan=False).encode()


def show_keywords(client: type[T]) -> type[T]:
    """Shows the keywords behind `**fields: Unpack[...]` to `help()` and `inspect`, which do not look into Unpack."""
    for method in [value for topic in client.__bases__ for value in vars(topic).values() if inspect.isfunction(value)]:
        signature = inspect.signature(method)
        *named, last = signature.parameters.values()
        if get_origin(last.annotation) is Unpack:
            hints = get_type_hints(get_args(last.annotation)[0])
            keywords = [_keyword(name, hint) for name, hint in hints.items()]
            method.__signature__ = signature.replace(parameters=[*named, *keywords])  # type: ignore[attr-defined]
    return client


def _keyword(name: str, hint: Any) -> inspect.Parameter:
    default = False if hint is bool else None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


@overload
def awaitable(method: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R]]: ...
@overload
def awaitable(method: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]: ...
def awaitable(method: Callable[P, Any]) -> Callable[P, Coroutine[Any, Any, Any]]:
    """The method for its name that ends in `_async`: itself if it is a coroutine function, else run in a thread."""
    if inspect.iscoroutinefunction(method):
        return method

    @functools.wraps(method)
    async def run_in_thread(*args: P.args, **values: P.kwargs) -> Any:
        return await asyncio.to_thread(method, *args, **values)

    return run_in_thread


class SessionClient:
    """What `for_session` returns. It shares connection, key and cache with its client.

    >>> chat = client.for_session("order-42")  # doctest: +SKIP
    >>> chat.publish_interaction("user-1", [{"content": "Where is my order?"}])  # doctest: +SKIP
    """

    def __init__(self, client: "AsyncReflexioClient | ReflexioClient", session_id: str) -> None:
        self.client = client
        self.session_id = (session_id or "").strip()
        if not self.session_id:
            raise ValueError("session_id must not be blank")

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.client, name)
        if not callable(method):
            return method
        signature = inspect.signature(method)
        if "session_id" not in signature.parameters:
            return method

        @functools.wraps(method)
        def bound(*args: Any, **values: Any) -> Any:
            arguments = signature.bind_partial(*args, **values).arguments
            if arguments.get("request") is not None:
                arguments["request"] = self._with_session(arguments["request"])
            arguments["session_id"] = self._check(arguments.get("session_id"))
            return method(**arguments)

        setattr(self, name, bound)  # the next access finds it without __getattr__
        return bound

    def _with_session(self, request: Any) -> Any:
        if isinstance(request, dict):
            return {**request, "session_id": self._check(request.get("session_id"))}
        return request.model_copy(update={"session_id": self._check(request.session_id)})

    def _check(self, session_id: str | None) -> str:
        if session_id not in (None, self.session_id):
            raise ValueError(f"this client is bound to session {self.session_id!r}")
        return self.session_id
