"""The one table of errors and HTTP statuses. Every error becomes a problem response (RFC 9457) here."""

import logging
import math
from pathlib import PurePath
from typing import Any

import orjson
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from reflexio import errors

log = logging.getLogger("reflexio.server")

MEDIA_TYPE = "application/problem+json"
STATUS: dict[type[errors.ReflexioError], int] = {
    errors.TooLarge: 413,
    errors.InvalidRequest: 422,
    errors.KeyNeeded: 403,
    errors.NotAuthorised: 401,
    errors.NotPermitted: 403,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.RateLimited: 429,
    errors.ProviderRefused: 502,
    errors.ProviderUnavailable: 503,
    errors.UpstreamTimeout: 504,
    errors.StorageFull: 507,
    errors.StorageUnavailable: 503,
}
TITLES = {
    400: "Bad request",
    401: "Authentication required",
    403: "Not permitted",
    404: "Not found",
    405: "Method not allowed",
    408: "Too slow",
    409: "Conflict",
    413: "Body too large",
    415: "Not JSON",
    422: "Invalid request",
    429: "Too many requests",
    431: "Head too large",
    500: "Internal error",
    502: "Provider refused",
    503: "Unavailable",
    504: "Too slow behind this server",
    507: "Disk full",
}
DOCUMENTED: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "A problem (RFC 9457): `detail` says in words what is wrong.",
        "content": {
            MEDIA_TYPE: {
                "schema": {
                    "type": "object",
                    "required": ["type", "title", "status", "detail", "request_id"],
                    "properties": {
                        **{name: {"type": "string"} for name in ("type", "title", "detail", "request_id")},
                        "status": {"type": "integer"},
                        "errors": {"type": "array", "items": {"type": "object", "required": ["loc", "msg", "type"]}},
                    },
                }
            }
        },
    }
}
"""The error response of every route in the OpenAPI document."""


SERVER_MISTAKE = "The server made a mistake. It is in the server's log under this request id."
NOT_OFFERED = {
    "/api/evaluations": "evaluation runs",
    "/api/get_retrieved_learning_evaluation_results": "evaluations of single learnings",
    "/api/get_evaluation_overview": "evaluation runs",
    "/api/session_outcome": "outcomes of sessions",
    "/api/get_session_outcomes": "outcomes of sessions",
    "/api/retrieval_experiments": "retrieval experiments",
    "/api/pending_tool_calls": "pending tool calls",
    "/api/rerank_user_profiles": "reranking; search_profiles ranks what it finds",
    "/api/profile_change_log": "a change log of profiles; get_learning_provenance has the history of each",
    "/api/playbook_aggregation_change_logs": "a change log; get_learning_provenance has the history of each playbook",
    "/api/playbook_aggregation_operations": "this way to aggregate; run_playbook_aggregation does it",
    "/api/review_user_playbooks": "a review by a model; get_review_queue is for reviewing by a person",
    "/api/admin/cache": "a cache to empty: it has none",
    "/api/my_config": "this; get_config returns the configuration",
    "/api/get_dashboard_stats": "dashboard statistics",
    "/api/get_playbook_application_stats": "application statistics",
    "/api/braintrust": "imports from Braintrust",
}
"""Paths that the published client or server knows and this server does not have, and what is missing."""


def problem(
    status: int, detail: str, *, request_id: str = "", headers: dict[str, str] | None = None, **more: Any
) -> Response:
    """A problem response. `more` are further fields of its body."""
    body = {
        "type": "about:blank",
        "title": TITLES.get(status, "Error"),
        "status": status,
        "detail": detail,
        "request_id": request_id,
        **more,
    }
    return Response(orjson.dumps(body), status_code=status, media_type=MEDIA_TYPE, headers=headers)


def status_of(error: errors.ReflexioError) -> int:
    """The status of the error's class, else of the nearest class above it, else 500."""
    return next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), 500)


def as_problem(error: errors.ReflexioError, request_id: str) -> Response:
    """The problem response for one of our own errors."""
    headers = {}
    if isinstance(error, errors.RateLimited):
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after)))
    if isinstance(error, errors.NotAuthorised) and not isinstance(error, errors.NotPermitted):
        headers["WWW-Authenticate"] = "Bearer"
    more = {"errors": error.errors} if isinstance(error, errors.InvalidRequest) and error.errors else {}
    return problem(status_of(error), _words_of(error), request_id=request_id, headers=headers, **more)


def _words_of(error: errors.ReflexioError) -> str:
    detail = str(_without_path(error)) if isinstance(error, errors.StorageUnavailable) else str(error)
    if isinstance(error, errors.InvalidRequest) and error.errors:
        return f"{detail} {describe_fields(error.errors)}"
    return detail


def error_words(request: Request, error: Exception) -> tuple[int, str]:
    """The status of an error and what to say about it. Errors of the server are logged under the request id."""
    path, request_id = request.url.path, str(request.scope.get("request_id", ""))
    match error:
        case errors.ReflexioError():
            if status_of(error) >= 500:
                log.error("%s %s (request %s): %s", request.method, path, request_id, error)
            return status_of(error), _words_of(error)
        case HTTPException():
            return error.status_code, str(error.detail)
        case _:
            log.exception("%s %s (request %s) failed", request.method, path, request_id, exc_info=error)
            return 500, SERVER_MISTAKE


def _without_path(error: errors.StorageUnavailable) -> errors.StorageUnavailable:
    """The database's own message and where it is are for the operator: they go to the log only."""
    path = str(error.values.get("path", ""))
    return type(error)(**{**error.values, "path": PurePath(path).name if path.endswith(".db") else "its folder"})


def describe_fields(fields: list[dict[str, Any]]) -> str:
    """The first five invalid fields in one line: where each is, and what is wrong with it."""
    lines = []
    for field in fields[:5]:
        place, message = ".".join(map(str, field["loc"])), field["msg"].removeprefix("Value error, ")
        lines.append(f"{place}: {message}" if place and message else place or message)
    return "; ".join(lines) + (f"; and {len(fields) - 5} more" if len(fields) > 5 else "")


def _no_route(path: str) -> str:
    """Paths of earlier servers that this one does not have say so."""
    missing = next((what for beginning, what in NOT_OFFERED.items() if path.startswith(beginning)), "")
    return f"There is no route {path!r}." + (f" This server does not offer {missing}." if missing else "")


async def error_response(request: Request, error: Exception) -> Response:
    """The response to any error. Errors of the server are logged under the request id."""
    path, request_id = request.url.path, str(request.scope.get("request_id", ""))
    match error:
        case errors.ReflexioError():
            if status_of(error) >= 500:
                log.error("%s %s (request %s): %s", request.method, path, request_id, error)
            return as_problem(error, request_id)
        case RequestValidationError():
            # The input itself is not echoed: it may be large, private or not even text.
            fields = [{"loc": list(item["loc"]), "msg": item["msg"], "type": item["type"]} for item in error.errors()]
            return problem(422, describe_fields(fields), request_id=request_id, errors=fields)
        case HTTPException():
            # Our own routes raise NotFound: a plain 404 means that no route has this path.
            detail = _no_route(path) if error.status_code == 404 else str(error.detail)
            headers = dict(error.headers) if error.headers else None
            return problem(error.status_code, detail, request_id=request_id, headers=headers)
        case _:
            status, detail = error_words(request, error)
            return problem(status, detail, request_id=request_id)


def install(app: FastAPI) -> None:
    """Makes FastAPI answer errors with problem responses."""
    for kind in (errors.ReflexioError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, error_response)
