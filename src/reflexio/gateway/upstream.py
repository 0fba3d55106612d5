"""The model server behind the pass-through, called through the check of all outgoing addresses."""

import asyncio
from typing import TYPE_CHECKING

from reflexio.errors import InvalidRequest, UpstreamTimeout, UpstreamUnavailable
from reflexio.gateway.headers import Headers
from reflexio.providers.outgoing import OPERATORS, AddressRefused

if TYPE_CHECKING:
    import httpx

CONNECT_SECONDS = 10.0
IDLE_SECONDS = 60.0
MOST_IDLE = 100


class Upstream:
    """The operator's model server. `seconds` is how long it may be silent, before and within an answer."""

    def __init__(self, url: str, seconds: float) -> None:
        self._url = url.rstrip("/")
        self._seconds = seconds
        self._client: httpx.AsyncClient | None = None

    async def send(self, method: str, path: bytes, query: bytes, headers: Headers, body: bytes) -> "httpx.Response":
        """The answer as soon as it begins. Its body is still to be read, and the answer to be closed."""
        import httpx

        url = f"{self._url}/{path.decode('ascii')}" + (f"?{query.decode('ascii')}" if query else "")
        try:
            # Built here, not by the client, which would add headers of its own.
            limits = {"timeout": self._timeout.as_dict()}
            request = httpx.Request(method, url, headers=headers, content=body, extensions=limits)
            return await self._connected().send(request, stream=True)
        except AddressRefused as error:
            raise UpstreamUnavailable(str(error)) from None
        except httpx.TimeoutException:
            raise UpstreamTimeout(seconds=round(self._seconds)) from None
        except (httpx.TransportError, OSError) as error:
            raise UpstreamUnavailable(f"({type(error).__name__})") from None
        except (httpx.InvalidURL, UnicodeError) as error:
            raise InvalidRequest(f"This path cannot be passed on: {error}") from None

    def _connected(self) -> "httpx.AsyncClient":
        if self._client is None:
            import httpx

            limits = httpx.Limits(
                max_connections=None, max_keepalive_connections=MOST_IDLE, keepalive_expiry=IDLE_SECONDS
            )
            transport = OPERATORS.guard(httpx.AsyncHTTPTransport(limits=limits))
            self._client = httpx.AsyncClient(transport=transport, trust_env=False)
        return self._client

    @property
    def _timeout(self) -> "httpx.Timeout":
        import httpx

        return httpx.Timeout(self._seconds, connect=min(CONNECT_SECONDS, self._seconds), pool=None)

    async def aclose(self) -> None:
        if self._client is not None:
            async with asyncio.timeout(CONNECT_SECONDS):
                await self._client.aclose()
