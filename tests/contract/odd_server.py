"""A server on loopback that breaks HTTP in ways that no library offers: it drips, hangs, hangs up, ends too early."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
Behaviour = Callable[[asyncio.StreamWriter], Awaitable[None]]


async def drip(writer: asyncio.StreamWriter) -> None:
    """A blank now and then, for ever: every read succeeds."""
    writer.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"1\r\n \r\n")
        await writer.drain()
        await asyncio.sleep(0.01)


async def hang(writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(3600)


async def hang_after_head(writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + b"Content-Length: 500\r\n\r\n")
    await writer.drain()
    await asyncio.sleep(3600)


async def hang_up(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


async def end_early(writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + b'Content-Length: 500\r\n\r\n{"id": ')
    await writer.drain()


@asynccontextmanager
async def odd_server(behave: Behaviour) -> AsyncIterator[str]:
    """The base URL of a server that reads a request and then behaves so."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await reader.readuntil(b"\r\n\r\n")
            await behave(writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        for task in tasks:
            task.cancel()
        server.close()
