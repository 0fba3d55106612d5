"""One call to the server: sent, tried again where that is safe, and turned into a value or an error."""

import asyncio
import json
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, Self, TypeVar

import httpx
from pydantic import BaseModel

from reflexio import errors
from reflexio.client import answers
from reflexio.client.background import AsyncBackground, OnError
from reflexio.client.cache import Cache
from reflexio.client.endpoint import Endpoint
from reflexio.client.http1 import Address, Reply
from reflexio.client.plain import AsyncPlain
from reflexio.models.interaction import BulkDeleteResponse
from reflexio.models.profile import UpdateResponse

log = logging.getLogger("reflexio.client")
A = TypeVar("A", bound=BaseModel)

CONNECT_SECONDS = 5.0
WAITED_SECONDS = 600.0


def zoned(moment: datetime | None) -> datetime | None:
    """A time without a zone is the caller's local time."""
    return moment.astimezone() if isinstance(moment, datetime) and moment.tzinfo is None else moment


def _target(path: str, params: dict[str, Any] | None) -> str:
    given = {name: value for name, value in (params or {}).items() if value is not None}
    return f"{path}?{httpx.QueryParams(given)}" if given else path


def _content(body: BaseModel | dict[str, Any] | None) -> bytes:
    """Only what the caller said: with our own clock in it, the same call a second later would be another one."""
    if isinstance(body, BaseModel):
        return body.__pydantic_serializer__.to_json(body, exclude_none=True, exclude_unset=True)
    return b"" if body is None else json.dumps(body, allow_nan=False).encode()


class Calls:
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
        self._headers = {"Content-Type": "application/json", **self.endpoint.headers}
        self._cache = Cache(cache_seconds)
        self._background = AsyncBackground(on_background_error)
        self._sleep = asyncio.sleep
        address = Address.of(self.endpoint.url) if transport is None else None
        self._plain = AsyncPlain(address) if address else None
        self._transport = transport
        self._full: httpx.AsyncClient | None = None
        self._making = threading.Lock()
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Finishes the background calls and closes the connection. Leaving the `with` block does the same."""
        await self.flush()
        self._is_closed = True
        if self._full is not None:
            await self._full.aclose()
        if self._plain is not None:
            await self._plain.aclose()

    async def flush(self) -> None:
        """Waits until every background call has finished."""
        await self._background.flush()

    async def _call(
        self,
        method: str,
        path: str,
        answer: type[A],
        body: BaseModel | dict[str, Any] | None = None,
        *,
        params: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        repeatable: bool = True,
        waited: bool = False,
    ) -> A:
        try:
            url = f"{self.endpoint.url}{_target(path, params)}"
            content = _content(body)
        except (ValueError, TypeError, RecursionError) as error:
            raise errors.InvalidRequest(f"This cannot be sent: {error}") from error
        sent = {**self._headers, **(headers or {})}
        seconds = WAITED_SECONDS if waited else self._seconds
        attempt, until = 0, time.monotonic() + seconds
        while True:
            try:
                return answers.read(await self._send(method, url, sent, content, seconds), answer, url)
            except (errors.ReflexioError, httpx.TransportError) as error:
                may_repeat = attempt < self._retries and answers.may_repeat(error, repeatable=repeatable)
                # Who gave a timeout wants an end by then, not several of them.
                if not may_repeat or time.monotonic() >= until:
                    if isinstance(error, httpx.TransportError):
                        raise errors.ServerUnreachable(
                            f"({type(error).__name__}: {error})", url=self.endpoint.url
                        ) from error
                    raise
                await self._sleep(answers.pause(error, attempt))
                attempt += 1

    async def _send(self, method: str, url: str, headers: dict[str, str], content: bytes, seconds: float) -> Reply:
        if self._is_closed:
            raise errors.ClientClosed
        connect_seconds = min(seconds, CONNECT_SECONDS)
        if self._plain is not None:
            request = self._plain.address.request(method, url.removeprefix(self.endpoint.url), headers, content)
            return await self._plain.send(request, seconds, connect_seconds)
        timeout = httpx.Timeout(seconds, connect=connect_seconds)
        try:
            return Reply.of(await self._http.request(method, url, content=content, headers=headers, timeout=timeout))
        except (httpx.InvalidURL, UnicodeError) as error:
            raise errors.InvalidRequest(f"{url!r} cannot be called: {error}") from error

    @property
    def _http(self) -> httpx.AsyncClient:
        """For https, proxies and streams. It is made when first needed: what it reads takes long and may be wrong."""
        if self._is_closed:
            raise errors.ClientClosed
        with self._making:
            if self._full is None:
                self._full = self._made()
            return self._full

    def _made(self) -> httpx.AsyncClient:
        try:
            return httpx.AsyncClient(
                transport=self._transport,
                verify=self.endpoint.trust,
                follow_redirects=False,
                limits=httpx.Limits(max_connections=100, max_keepalive_connections=100, keepalive_expiry=60),
                trust_env=not self.endpoint.is_here,
            )
        except (ImportError, ValueError, httpx.InvalidURL) as error:
            raise errors.InvalidRequest(f"The proxy of the environment cannot be used: {error}") from error

    async def _gently(self, call: Callable[[], Awaitable[A]], answer: type[A]) -> A:
        """A call that an agent makes while it works: with `fail_open`, its failure is an empty answer."""
        try:
            return await call()
        except errors.ReflexioError as error:
            if not self._fail_open:
                raise
            log.warning("going on without memory: %s", error)
            return answers.empty(answer, error)

    async def _cached(
        self,
        topic: str,
        question: str,
        answer: type[A],
        call: Callable[[], Awaitable[A]],
        *,
        force_refresh: bool,
    ) -> A:
        known = None if force_refresh else self._cache.get(topic, question, answer)
        if known is not None:
            return known
        change = self._cache.change(topic)
        found = await self._gently(call, answer)
        if getattr(found, "success", True):
            self._cache.put(topic, question, found, change)
        return found

    async def _delete(
        self,
        path: str,
        answer: type[A],
        body: BaseModel | None = None,
        *,
        topics: tuple[str, ...] = (),
        wait: bool,
    ) -> A | None:
        """Deletes, and waits for it or not. What is deleted is gone from the cache before and after."""
        self._cache.forget(*topics)

        async def call() -> A:
            done = await self._call("DELETE", path, answer, body, repeatable=False)
            self._cache.forget(*topics)
            return done

        if wait:
            return await call()
        self._background.start(call)
        return None

    async def _delete_many(self, path: str, body: BaseModel | None, topics: tuple[str, ...]) -> BulkDeleteResponse:
        done = await self._delete(path, BulkDeleteResponse, body, topics=topics, wait=True)
        return done or BulkDeleteResponse()

    async def _change(self, path: str, body: BaseModel, topics: tuple[str, ...]) -> UpdateResponse:
        done = await self._call("PUT", path, UpdateResponse, body)
        self._cache.forget(*topics)
        return done
