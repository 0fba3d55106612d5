"""The HTTP client under every chat model: bounded in time and in the length of an answer."""

from collections.abc import AsyncIterator

import httpx2
from pydantic_ai.models import create_async_httpx2_client

from reflexio.errors import UnreadableAnswer

# An answer of 64,000 tokens has some 300,000 bytes.
MOST_BYTES = 2 * 1024 * 1024
CONNECT_SECONDS = 5.0


class _Bounded(httpx2.AsyncByteStream):
    """Stops reading a body that is longer than any answer."""

    def __init__(self, body: httpx2.AsyncByteStream) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = 0
        async for chunk in self._body:
            read += len(chunk)
            if read > MOST_BYTES:
                raise UnreadableAnswer(f"It is longer than {MOST_BYTES:,} bytes.")
            yield chunk

    async def aclose(self) -> None:
        await self._body.aclose()


async def _bound(response: httpx2.Response) -> None:
    body = response.stream
    assert isinstance(body, httpx2.AsyncByteStream)
    response.stream = _Bounded(body)


def connect(timeout: float) -> httpx2.AsyncClient:
    """A client whose answers end. They are asked for uncompressed, so that the bytes that arrive are all there are."""
    client = create_async_httpx2_client(timeout=httpx2.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS)))
    client.headers["Accept-Encoding"] = "identity"
    client.event_hooks = {**client.event_hooks, "response": [_bound]}
    return client
