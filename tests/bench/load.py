"""A lean load generator: POST requests over connections that stay open, so that the server is measured, not a client.

It speaks just enough HTTP/1.1 for our own server: every response must have a Content-Length.
"""

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4


@dataclass
class Load:
    """What a run measured: seconds of each request, how many failed, and seconds of them all."""

    taken: list[float] = field(default_factory=list)
    failed: int = 0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        return len(self.taken) / self.seconds


def post(url: str, path: str, body: Callable[[int, int], Any], *, clients: int, each: int) -> Load:
    """Sends `each` requests from each of so many clients at once. `body` makes one of client and request number."""
    return asyncio.run(_run(url, path, body, clients, each))


async def _run(url: str, path: str, body: Callable[[int, int], Any], clients: int, each: int) -> Load:
    load = Load()
    began = time.perf_counter()
    await asyncio.gather(*(_client(load, url, path, body, client, each) for client in range(clients)))
    load.seconds = time.perf_counter() - began
    return load


async def _client(load: Load, url: str, path: str, body: Callable[[int, int], Any], client: int, each: int) -> None:
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    for number in range(each):
        content = json.dumps(body(client, number)).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Type: application/json\r\n"
            f"Idempotency-Key: {uuid4().hex}\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        began = time.perf_counter()
        writer.write(head.encode() + content)
        status, answer = await _response(reader)
        load.taken.append(time.perf_counter() - began)
        if status != 200:
            load.failed += 1
            print(status, answer[:200])
    writer.close()
    await writer.wait_closed()


async def _response(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
    return int(head.split(b" ", 2)[1]), await reader.readexactly(length)
