"""Where the server is, which key it takes, and the httpx clients that reach it.

The client's two environment variables are read here. Proxies and certificates are left to httpx.
"""

import asyncio
import os
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

import httpx

from reflexio import errors
from reflexio.models.loopback import is_loopback

C = TypeVar("C", httpx.Client, httpx.AsyncClient)

DEFAULT_URL = "http://127.0.0.1:8081"
HIGHEST_PORT = 65_535
IDLE_SECONDS = 60.0
"""The server keeps an idle connection longer than this, so it does not close one while a call is on its way."""
LIMITS = httpx.Limits(max_connections=100, max_keepalive_connections=100, keepalive_expiry=IDLE_SECONDS)


@dataclass(frozen=True)
class Endpoint:
    """URL and key: the caller's, else REFLEXIO_URL and REFLEXIO_API_KEY, else a server on this machine."""

    url: str
    api_key: str

    @classmethod
    def find(cls, api_key: str, url_endpoint: str) -> "Endpoint":
        url = url_endpoint or os.environ.get("REFLEXIO_URL", "") or DEFAULT_URL
        key = api_key or os.environ.get("REFLEXIO_API_KEY", "")
        return cls(url.strip().rstrip("/"), key.strip())

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}

    def open_client(self, client_type: Callable[..., C], transport: object) -> C:
        """An httpx client that is not connected yet. Proxies of the environment cannot reach this machine."""
        try:
            url = httpx.URL(self.url)
        except httpx.InvalidURL as error:
            raise errors.InvalidRequest(f"{self.url!r} cannot be called: {error}") from error
        if (url.port or 0) > HIGHEST_PORT:
            raise errors.InvalidRequest(f"{self.url!r} cannot be called: ports end at {HIGHEST_PORT}")
        verify = _certificates() if url.scheme == "https" else False
        try:
            return client_type(transport=transport, verify=verify, limits=LIMITS, trust_env=not is_loopback(url.host))
        except (ImportError, ValueError, httpx.InvalidURL) as error:
            raise errors.InvalidRequest(f"The proxy of the environment cannot be used: {error}") from error


@cache
def _certificates() -> ssl.SSLContext:
    """Reading the certificates is slow: it happens once, and only for https."""
    return httpx.create_ssl_context()


class HttpClients:
    """One httpx client for each process: after a fork, parent and child must not share connections.

    It is opened when first used. Threads share it. Without a lock: two threads that come first at once may each open
    one, and the second is dropped before it connects.
    """

    def __init__(self, endpoint: Endpoint, transport: httpx.BaseTransport | None) -> None:
        self._endpoint = endpoint
        self._transport = transport
        self._clients: dict[int, httpx.Client] = {}
        self._is_closed = False

    def get(self) -> httpx.Client:
        if self._is_closed:
            raise errors.ClientClosed
        process = os.getpid()
        client = self._clients.get(process)
        return client or self._clients.setdefault(process, self._endpoint.open_client(httpx.Client, self._transport))

    def close(self) -> None:
        self._is_closed = True
        if client := self._clients.pop(os.getpid(), None):
            client.close()


class AsyncHttpClients:
    """One httpx client for each event loop: connections belong to the loop that opened them."""

    def __init__(self, endpoint: Endpoint, transport: httpx.AsyncBaseTransport | None) -> None:
        self._endpoint = endpoint
        self._transport = transport
        self._clients: dict[asyncio.AbstractEventLoop, httpx.AsyncClient] = {}
        self._is_closed = False

    def get(self) -> httpx.AsyncClient:
        if self._is_closed:
            raise errors.ClientClosed
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            for closed_loop in [known for known in list(self._clients) if known.is_closed()]:
                self._clients.pop(closed_loop, None)
            self._clients[loop] = self._endpoint.open_client(httpx.AsyncClient, self._transport)
        return self._clients[loop]

    async def aclose(self) -> None:
        """Closes the connections of the running loop. Those of other loops end with their loops."""
        self._is_closed = True
        if client := self._clients.pop(asyncio.get_running_loop(), None):
            await client.aclose()
        self._clients.clear()
