"""The door for JSON: what comes through is text that every database can hold.

Lone surrogates, NUL characters and bottomless nesting stop here, with words that say so.
"""

from collections.abc import Callable, Coroutine
from typing import Any

import orjson
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from reflexio.models.shape import is_deeper

DEEPEST = 64
"""Levels of lists and objects in a body; nothing of ours comes near."""


def parse(body: bytes) -> Any:
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise HTTPException(400, f"The body is not valid JSON: {error}") from None
    # Most bodies have too few brackets to be deep, and escaped NULs are rare: only then is all looked through.
    if body.count(b"[") + body.count(b"{") > DEEPEST and is_deeper(parsed, DEEPEST):
        raise HTTPException(422, f"The body is nested deeper than {DEEPEST} levels.")
    if b"\\u0000" in body and _holds_nul(parsed):
        raise HTTPException(422, "Texts must not contain NUL characters.")
    return parsed


def _holds_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any(_holds_nul(key) or _holds_nul(each) for key, each in value.items())
    return isinstance(value, list) and any(map(_holds_nul, value))


class JsonRequest(Request):
    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            self._json = parse(await self.body())
        return self._json


def _is_json(content_type: str) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))


class JsonRoute(APIRoute):
    """A route whose body comes through our door."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def through_the_door(request: Request) -> Response:
            arrived = JsonRequest(request.scope, request.receive)
            # Read here, because FastAPI takes every error on the way, such as a body too large, for bad JSON.
            try:
                body = await arrived.body()
            except ClientDisconnect:
                raise HTTPException(400, "The caller went away before the body was complete.") from None
            if body and not _is_json(request.headers.get("content-type", "")):
                raise HTTPException(415, "The body must be JSON, sent with Content-Type: application/json.")
            return await handle(arrived)

        return through_the_door
