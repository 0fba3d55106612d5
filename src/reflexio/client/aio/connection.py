"""One call to the server: sent, repeated where that is safe, and turned into a value or an error.

Also what many methods share: failing open, the cache, and calls in the background.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Self, TypeVar

import httpx
from pydantic import BaseModel

from reflexio import errors
from reflexio.client import responses
from reflexio.client.background import AsyncBackground, OnError
from reflexio.client.cache import LEARNINGS, Cache
from reflexio.client.endpoint import AsyncHttpClients, Endpoint
from reflexio.client.requests import build_request, check_headers, encode
from reflexio.client.responses import Reply
from reflexio.models.interaction import BulkDeleteResponse
from reflexio.models.profile import UpdateResponse

log = logging.getLogger("reflexio.client")
A = TypeVar("A", bound=BaseModel)

CONNECT_SECONDS = 5.0
LEARNING_SECONDS = 600.0
"""For calls that the server answers when it has learned."""


class Connection:
    """The connection that all topics of the client share."""

    def __init__(
        self,
        api_key: str = "",
        url_endpoint: str = "",
        timeout: float = 60.0,
        *,
        fail_open: bool = False,
        retries: int = 2,
        on_background_error: OnError | None = None,
        cache_seconds: float = 600.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Connects when first used.

        With `fail_open` the calls that an agent makes while it works (publish, read, search) answer with nothing
        instead of raising when memory cannot be reached.
        """
        self.endpoint = Endpoint.find(api_key, url_endpoint)
        self._fail_open = fail_open
        self._retries = retries
        self._seconds = timeout
        self._cache = Cache(cache_seconds)
        self._background = AsyncBackground(on_background_error)
        self._sleep = asyncio.sleep
        self._http = AsyncHttpClients(self.endpoint, transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Finishes the background calls and closes the connection. Leaving the `with` block does the same."""
        await self.flush()
        await self._http.aclose()

    async def flush(self) -> None:
        """Waits until every background call has finished."""
        await self._background.flush()

    async def _call(
        self,
        method: str,
        path: str,
        response_type: type[A],
        request: BaseModel | dict[str, Any] | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        repeatable: bool = True,
        seconds: float | None = None,
    ) -> A:
        """Sends one request and reads the response. Repeats it while that is safe and within the time."""
        seconds = self._seconds if seconds is None else seconds
        try:
            query = {name: value for name, value in (params or {}).items() if value is not None}
            url = f"{self.endpoint.url}{path}" + (f"?{httpx.QueryParams(query)}" if query else "")
            content = encode(request)
        except (ValueError, TypeError, RecursionError) as error:
            raise errors.InvalidRequest(f"This cannot be sent: {error}") from error
        headers = {"Content-Type": "application/json", **self.endpoint.headers, **(headers or {})}
        check_headers(headers)
        attempt, until = 0, time.monotonic() + seconds
        while True:
            try:
                return responses.read(await self._send(method, url, headers, content, seconds), response_type, url)
            except (errors.ReflexioError, httpx.TransportError) as error:
                may_repeat = attempt < self._retries and responses.may_repeat(error, repeatable=repeatable)
                # The timeout is for the call and its repetitions together.
                if not may_repeat or time.monotonic() >= until:
                    if isinstance(error, httpx.TransportError):
                        raise self._unreachable(error) from error
                    raise
                await self._sleep(responses.pause(error, attempt))
                attempt += 1

    async def _send(self, method: str, url: str, headers: Mapping[str, str], content: bytes, seconds: float) -> Reply:
        timeout = httpx.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS))
        until = time.monotonic() + seconds
        http = self._http.get()
        try:
            async with http.stream(method, url, headers=headers, content=content, timeout=timeout) as response:
                parts = []
                async for part in response.aiter_bytes():
                    parts.append(part)
                    # httpx limits the time between two parts, not the time of them all.
                    if time.monotonic() >= until:
                        raise httpx.ReadTimeout("the response was not complete in time")
                return Reply(response.status_code, response.headers, b"".join(parts))
        except (httpx.InvalidURL, UnicodeError) as error:
            raise errors.InvalidRequest(f"{url!r} cannot be called: {error}") from error

    def _unreachable(self, error: httpx.TransportError) -> errors.ServerUnreachable:
        return errors.ServerUnreachable(f"({type(error).__name__}: {error})", url=self.endpoint.url)

    async def _or_empty(self, response_type: type[A], call: Callable[[], Awaitable[A]]) -> A:
        """For calls that an agent makes while it works: with `fail_open` a failure is an empty response."""
        try:
            return await call()
        except errors.ReflexioError as error:
            if not self._fail_open:
                raise
            log.warning("going on without memory: %s", error)
            return responses.empty(response_type, error)

    async def _read(
        self,
        path: str,
        response_type: type[A],
        request_type: type[BaseModel],
        fields: Mapping[str, object],
        **named: object,
    ) -> A:
        async def call() -> A:
            return await self._call("POST", path, response_type, build_request(request_type, fields, **named))

        return await self._or_empty(response_type, call)

    async def _read_cached(
        self, topic: str, path: str, response_type: type[A], request: BaseModel, *, force_refresh: bool
    ) -> A:
        question = request.model_dump_json()
        known = None if force_refresh else self._cache.get(topic, question, response_type)
        if known is not None:
            return known
        change = self._cache.change(topic)
        call = partial(self._call, "POST", path, response_type, request)
        response = await self._or_empty(response_type, call)
        if getattr(response, "success", True):
            self._cache.put(topic, question, response, change)
        return response

    async def _list(self, path: str, response_type: type[A], **params: object) -> A:
        return await self._or_empty(response_type, partial(self._call, "GET", path, response_type, params=params))

    async def _publish(self, response_type: type[A], call: Callable[[], Awaitable[A]]) -> A:
        """Learning follows a publish some time later, so the cache keeps no learnings meanwhile."""
        self._cache.pause(*LEARNINGS)
        response = await self._or_empty(response_type, call)
        self._cache.pause(*LEARNINGS)
        return response

    async def _change(
        self,
        path: str,
        response_type: type[A],
        request: BaseModel | None,
        *topics: str,
        method: str = "POST",
        repeatable: bool = False,
        seconds: float | None = None,
    ) -> A:
        """Sends a change. The cache forgets its topics before, and again after: reads may have come between."""
        self._cache.forget(*topics)
        response = await self._call(method, path, response_type, request, repeatable=repeatable, seconds=seconds)
        self._cache.forget(*topics)
        return response

    async def _update(self, path: str, request: BaseModel, *topics: str) -> UpdateResponse:
        return await self._change(path, UpdateResponse, request, *topics, method="PUT", repeatable=True)

    async def _delete(
        self, path: str, response_type: type[A], request: BaseModel, *topics: str, wait: bool
    ) -> A | None:
        call = partial(self._change, path, response_type, request, *topics, method="DELETE")
        if wait:
            return await call()
        self._in_background(call, *topics)
        return None

    async def _delete_many(self, path: str, request: BaseModel | None, *topics: str) -> BulkDeleteResponse:
        return await self._change(path, BulkDeleteResponse, request, *topics, method="DELETE")

    def _in_background(self, call: Callable[[], Awaitable[object]], *topics: str) -> None:
        self._cache.forget(*topics)
        self._background.start(call)
