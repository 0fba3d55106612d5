"""Errors become HTTP answers here and nowhere else: RFC 9457 problem details, with a `detail` in plain words."""

import logging
import math
from typing import Any

import orjson
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from reflexio import errors

log = logging.getLogger("reflexio.server")

MEDIA = "application/problem+json"
STATUS: dict[type[errors.ReflexioError], int] = {
    errors.TooLarge: 413,
    errors.InvalidRequest: 422,
    errors.NotAuthorised: 401,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.RateLimited: 429,
    errors.ProviderRefused: 502,
    errors.ProviderUnavailable: 503,
    errors.StorageFull: 507,
    errors.StorageUnavailable: 503,
}
TITLES = {
    400: "Bad request",
    401: "Authentication required",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    413: "Body too large",
    415: "Not JSON",
    422: "Invalid request",
    429: "Too many requests",
    500: "Internal error",
    502: "Provider refused",
    503: "Unavailable",
    507: "Disk full",
}


DOCUMENTED: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "A problem (RFC 9457): `detail` says in words what is wrong.",
        "content": {
            MEDIA: {
                "schema": {
                    "type": "object",
                    "required": ["type", "title", "status", "detail", "request_id"],
                    "properties": {
                        "type": {"type": "string"},
                        "title": {"type": "string"},
                        "status": {"type": "integer"},
                        "detail": {"type": "string"},
                        "request_id": {"type": "string"},
                        "errors": {"type": "array", "items": {"type": "object", "required": ["loc", "msg", "type"]}},
                    },
                }
            }
        },
    }
}
"""What the OpenAPI document says about every route's errors."""


def problem(
    status: int, detail: str, *, request_id: str = "", headers: dict[str, str] | None = None, **more: Any
) -> Response:
    body = {
        "type": "about:blank",
        "title": TITLES.get(status, "Error"),
        "status": status,
        "detail": detail,
        "request_id": request_id,
        **more,
    }
    return Response(orjson.dumps(body), status_code=status, media_type=MEDIA, headers=headers)


def status_of(error: errors.ReflexioError) -> int:
    return next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), 500)


def as_problem(error: errors.ReflexioError, request_id: str) -> Response:
    status = status_of(error)
    headers = {}
    if isinstance(error, errors.RateLimited):
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after)))
    if isinstance(error, errors.NotAuthorised):
        headers["WWW-Authenticate"] = "Bearer"
    more = {"errors": error.errors} if isinstance(error, errors.InvalidRequest) and error.errors else {}
    # What the database said is for the operator, and in the log.
    detail = str(errors.StorageUnavailable()) if type(error) is errors.StorageUnavailable else str(error)
    if more:
        detail = f"{detail} {in_words(error.errors)}"  # type: ignore[attr-defined]
    return problem(status, detail, request_id=request_id, headers=headers, **more)


def in_words(found: list[dict[str, Any]]) -> str:
    words = [": ".join(filter(None, (".".join(map(str, each["loc"])), _said(each["msg"])))) for each in found[:5]]
    return "; ".join(words) + (f"; and {len(found) - 5} more" if len(found) > 5 else "")


def _said(message: str) -> str:
    return message.removeprefix("Value error, ")


def _request_id(request: Request) -> str:
    return str(request.scope.get("request_id", ""))


async def _ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, errors.ReflexioError)
    if status_of(error) >= 500:
        log.error("%s %s (request %s): %s", request.method, request.url.path, _request_id(request), error)
    return as_problem(error, _request_id(request))


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    # What was sent is not sent back: it may be large, private or not even text.
    found = [{"loc": list(each["loc"]), "msg": each["msg"], "type": each["type"]} for each in error.errors()]
    return problem(422, in_words(found), request_id=_request_id(request), errors=found)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers) if error.headers else None
    # Our own routes raise NotFound: this 404 is of a path that nobody answers.
    detail = f"There is no route {request.url.path!r}." if error.status_code == 404 else str(error.detail)
    return problem(error.status_code, detail, request_id=_request_id(request), headers=headers)


async def _unexpected(request: Request, error: Exception) -> Response:
    at = request.method, request.url.path, _request_id(request)
    log.exception("%s %s (request %s) failed", *at, exc_info=error)
    detail = "The server made a mistake. It is in the server's log under this request id."
    # This answer is made outside of the room that stamps all others.
    stamp = {"X-Request-ID": _request_id(request)}
    return problem(500, detail, request_id=_request_id(request), headers=stamp)


async def answer(request: Request, error: Exception) -> Response:
    """The answer to an error that came as far as the entry."""
    match error:
        case errors.ReflexioError():
            return await _ours(request, error)
        case RequestValidationError():
            return await _invalid(request, error)
        case HTTPException():
            return await _http(request, error)
        case _:
            return await _unexpected(request, error)


def install(app: FastAPI) -> None:
    app.add_exception_handler(errors.ReflexioError, _ours)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)
