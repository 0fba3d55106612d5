"""Requests from what a caller passes: request models, their JSON, and the methods' signatures.

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
from typing import Any, ParamSpec, TypeVar, get_args, get_type_hints, overload

from pydantic import BaseModel, ValidationError

from reflexio.client import fields as generated
from reflexio.errors import InvalidRequest

B = TypeVar("B", bound=BaseModel)
F = TypeVar("F", bound=Callable[..., object])
P = ParamSpec("P")
R = TypeVar("R")

NO_FIELDS: Mapping[str, object] = MappingProxyType({})
UNSENDABLE = re.compile(r"[^\t\x20-\x7e]")


def build_request(model: type[B], fields: Mapping[str, object] = NO_FIELDS, /, **named: object) -> B:
    """A request from the parameters that a method names and the keywords it passes on in `fields`.

    None stands for the model's default. A time without a zone is local time. A whole request, as one of the named
    parameters or as the keyword `request`, takes the place of everything else. Raises TypeError for unknown keywords.
    """
    if fields:
        _check_keywords(model, fields)
    whole = next((value for value in named.values() if isinstance(value, Mapping | model)), fields.get("request"))
    if isinstance(whole, model):
        return whole
    values = whole if isinstance(whole, Mapping) else {**named, **fields}
    try:
        return model.model_validate({name: _zoned(value) for name, value in values.items() if value is not None})
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors()]
        raise InvalidRequest("; ".join(problems)) from error


def _check_keywords(model: type[BaseModel], fields: Mapping[str, object]) -> None:
    known = getattr(generated, f"{model.__name__.removesuffix('Request')}Fields").__optional_keys__
    if unknown := fields.keys() - known:
        names = ", ".join(sorted(unknown))
        raise TypeError(f"got an unexpected keyword argument: {names}. Known are {', '.join(sorted(known))}.")


def _zoned(value: object) -> object:
    return value.astimezone() if isinstance(value, datetime) and value.tzinfo is None else value


def encode(body: BaseModel | dict[str, Any] | None) -> bytes:
    """Only what the caller set: with defaults such as the time in it, the same call a second later would differ."""
    if isinstance(body, BaseModel):
        return body.__pydantic_serializer__.to_json(body, exclude_none=True, exclude_unset=True)
    return b"" if body is None else json.dumps(body, allow_nan=False).encode()


def check_headers(headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        if UNSENDABLE.search(value):
            raise InvalidRequest(f"{name} may hold printable ASCII characters only.")


def with_field_signature(method: F) -> F:
    """Shows the keywords behind `**fields` to `help()` and `inspect.signature`, which do not look into Unpack."""
    signature = inspect.signature(method)
    *named, packed = signature.parameters.values()
    keywords = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=False if hint is bool else None, annotation=hint
        )
        for name, hint in get_type_hints(get_args(packed.annotation)[0]).items()
    ]
    method.__signature__ = signature.replace(parameters=[*named, *keywords])  # type: ignore[attr-defined]
    return method


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
