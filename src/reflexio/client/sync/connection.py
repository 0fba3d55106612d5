# Generated from client/aio/connection.py by scripts/make_sync_client.py. Change that file and run `make format`.
"""One call to the server: sent, repeated where that is safe, and turned into a value or an error.

Also what the methods share: failing open, the cache, and calls in the background. What differs is in `routes`.
"""

import logging
import time
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from typing import Any, Self, TypeVar

import httpx
from pydantic import BaseModel

from reflexio import errors
from reflexio.client import responses
from reflexio.client.background import Background, OnError
from reflexio.client.cache import Cache
from reflexio.client.endpoint import Endpoint, HttpClients
from reflexio.client.requests import NO_FIELDS, NO_HEADERS, as_query, build_request, prepare
from reflexio.client.responses import HttpReply
from reflexio.client.routes import ClientRoute, NoRequest

log = logging.getLogger("reflexio.client")
A = TypeVar("A", bound=BaseModel)


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
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Connects when first used.

        With `fail_open` the calls that an agent makes while it works (publish, read, search) return an empty response
        instead of raising when the server cannot be reached.
        """
        self.endpoint = Endpoint.find(api_key, url_endpoint)
        self._fail_open = fail_open
        self._retries = retries
        self._seconds = timeout
        self._cache = Cache(cache_seconds)
        self._background = Background(on_background_error)
        self._sleep = time.sleep
        self._http = HttpClients(self.endpoint, transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Finishes the background calls and closes the connection. Leaving the `with` block does the same."""
        self.flush()
        self._http.close()

    def flush(self) -> None:
        """Waits until every background call has finished."""
        self._background.flush()

    def _send(
        self,
        route: ClientRoute[A],
        fields: Mapping[str, object] = NO_FIELDS,
        /,
        headers: Mapping[str, str] = NO_HEADERS,
        **named: object,
    ) -> A:
        """Builds a request from a method's arguments, sends it, and returns the response.

        With `fail_open` the failure of a call that an agent makes while it works is an empty response.
        """
        invalidate = self._cache.pause if route.changes_later else self._cache.forget
        invalidate(*route.changes)
        try:
            if route.request is NoRequest:
                response = self._call(route, params=named)
            else:
                request = build_request(route.request, fields, **named)
                parts = {"params": as_query(request)} if route.method == "GET" else {"body": request}
                response = self._call(route, headers=headers, **parts)
        except errors.ReflexioError as error:
            if not (self._fail_open and route.fails_open):
                raise
            log.warning("going on without memory: %s", error)
            response = responses.empty(route.response, error)
        # Once more: other calls may have read what is no longer true meanwhile.
        invalidate(*route.changes)
        return response

    def _send_cached(
        self, route: ClientRoute[A], force_refresh: bool, fields: Mapping[str, object], /, **named: object
    ) -> A:
        request = build_request(route.request, fields, **named)
        question = request.model_dump_json()
        known = None if force_refresh else self._cache.get(route.cached_as, question, route.response)
        if known is not None:
            return known
        change = self._cache.change(route.cached_as)
        response = self._send(route, request=request)
        if getattr(response, "success", True):
            self._cache.put(route.cached_as, question, response, change)
        return response

    def _delete(self, route: ClientRoute[A], wait: bool, /, **named: object) -> A | None:
        if wait:
            return self._send(route, request=build_request(route.request, **named))
        self._start(route, **named)
        return None

    def _start(self, route: ClientRoute[A], **named: object) -> None:
        request = build_request(route.request, **named)
        self._cache.forget(*route.changes)
        self._background.start(partial(self._send, route, request=request))

    def _call(
        self,
        route: ClientRoute[A],
        body: BaseModel | dict[str, Any] | None = None,
        *,
        params: Mapping[str, object] = NO_FIELDS,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> A:
        """One call and its repetitions: while they are safe, within the time that the caller allows for all of them."""
        seconds = route.seconds or self._seconds
        request = prepare(
            self.endpoint, route.method, route.path, body=body, params=params, headers=headers, seconds=seconds
        )
        attempt, until = 0, time.monotonic() + seconds
        while True:
            try:
                return responses.read(self._exchange(request, seconds), route.response, str(request.url))
            except (errors.ReflexioError, httpx.TransportError) as error:
                may_repeat = attempt < self._retries and responses.may_repeat(error, repeatable=route.repeatable)
                if not may_repeat or time.monotonic() >= until:
                    if isinstance(error, httpx.TransportError):
                        raise self._unreachable(error) from error
                    raise
                self._sleep(responses.pause(error, attempt))
                attempt += 1

    def _exchange(self, request: httpx.Request, seconds: float) -> HttpReply:
        until = time.monotonic() + seconds
        try:
            with closing(self._http.get().send(request, stream=True)) as response:
                parts = []
                for part in response.iter_bytes():
                    parts.append(part)
                    # httpx limits the time between two parts, not the time of them all.
                    if time.monotonic() >= until:
                        raise httpx.ReadTimeout("the response was not complete in time")
                return HttpReply(response.status_code, response.headers, b"".join(parts))
        except UnicodeError as error:
            raise errors.InvalidRequest(f"{self.endpoint.url!r} cannot be called: {error}") from error

    def _unreachable(self, error: httpx.TransportError) -> errors.ServerUnreachable:
        return errors.ServerUnreachable(f"({type(error).__name__}: {error})", url=self.endpoint.url)
