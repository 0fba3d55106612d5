"""What a caller without a key may cost: a real listener and raw sockets, with a clock that the test moves."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import uvicorn
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from reflexio.models.access import Caller
from reflexio.server.connections import MAX_HEAD_BYTES, MAX_HEADERS, ConnectionLimits, Connections
from tests.unit.server.conftest import Ticks

PATIENCE = 5
LIMITS = ConnectionLimits(head=10, body=30, idle=75, drain=3, write=60, connections=3)
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class App:
    """Reads bodies of callers that it knows, refuses the others at their head, and answers `/wait` when told to."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.waiting = asyncio.Event()
        self.heads = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.heads += 1
        response: Response = PlainTextResponse("hello")
        if scope["path"] == "/known":
            scope["caller"] = Caller("acme")  # as the request gate does
            while (await receive()).get("more_body"):
                pass
        elif scope["path"] == "/refused":
            response = PlainTextResponse("no", 401)
        elif scope["path"] == "/large":
            response = PlainTextResponse("x" * 8_000_000)
        elif scope["path"] == "/wait":
            self.waiting.set()
            await self.go.wait()
        await response(scope, receive, send)


class Server:
    def __init__(self, app: App, ticks: Ticks, limits: ConnectionLimits) -> None:
        self.app, self.ticks = app, ticks
        self.connections = Connections(limits, monotonic=ticks)
        self._config = uvicorn.Config(app, http=self.connections.protocol, ws="none", log_config=None)
        self._config.load()
        self._state = ServerState()
        self._lines: list[Line] = []
        self.port = 0

    def protocol(self) -> Any:
        return self._config.http_protocol_class(  # type: ignore[call-arg]
            config=self._config, server_state=self._state, app_state={}
        )

    async def dial(self) -> Line:
        line = await asyncio.open_connection("127.0.0.1", self.port)
        self._lines.append(line)
        name = line[1].get_extra_info("sockname")
        await until(lambda: line[0]._eof or any(name == other.client for other in self.connections._open))  # type: ignore[attr-defined]
        return line

    async def hang_up(self) -> None:
        for line in self._lines:
            line[1].transport.abort()
        for line in self._lines:
            with suppress(ConnectionError):
                await line[1].wait_closed()

    def passes(self, seconds: float) -> None:
        self.ticks.now += seconds
        self.connections.check()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0)


async def everything(line: Line) -> bytes:
    """What comes until the server closes; a reset counts as an end."""
    received = b""
    async with asyncio.timeout(PATIENCE):
        try:
            while part := await line[0].read(65_536):
                received += part
        except ConnectionError:
            pass
    return received


async def answer(line: Line, request: bytes = b"") -> bytes:
    """One answer with a length."""
    line[1].write(request)
    async with asyncio.timeout(PATIENCE):
        head = await line[0].readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        return head + await line[0].readexactly(length)


@asynccontextmanager
async def serving(ticks: Ticks, limits: ConnectionLimits = LIMITS) -> AsyncIterator[Server]:
    server = Server(App(), ticks, limits)
    listener = await asyncio.get_running_loop().create_server(server.protocol, "127.0.0.1", 0)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        server.app.go.set()
        listener.close()
        await server.hang_up()
        await until(lambda: not server.connections._open)


@pytest.fixture
async def server(ticks: Ticks) -> AsyncIterator[Server]:
    async with serving(ticks) as server:
        yield server


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * MAX_HEAD_BYTES + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"a" * 3 * MAX_HEAD_BYTES,
        b"GET /" + b"a" * 3 * MAX_HEAD_BYTES,
        b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * (MAX_HEADERS + 1) + b"\r\n",
        b"GET / HTTP/1.1\r\n" + b"X" * 3 * MAX_HEAD_BYTES,
        GET + b"GET / HTTP/1.1\r\nX: " + b"a" * 3 * MAX_HEAD_BYTES,
    ],
    ids=["one header", "without end", "path", "many headers", "name", "second request"],
)
async def test_a_large_head_is_refused(server: Server, head: bytes) -> None:
    line = await server.dial()
    line[1].write(head)
    line[1].write_eof()
    received = await everything(line)
    assert b"431" in received
    assert b"application/problem+json" in received
    assert b"65,536 bytes" in received
    assert server.app.heads == head.startswith(GET)


async def test_a_head_that_never_ends_is_not_stored(server: Server) -> None:
    line = await server.dial()
    line[1].write(b"GET / HTTP/1.1\r\n")
    sent = 0
    try:
        while sent < 8_000_000:
            line[1].write(b"X: " + b"a" * 60_000 + b"\r\n")
            await line[1].drain()
            sent += 60_000
            await asyncio.sleep(0)
            server.passes(1)
    except ConnectionError:
        pass
    await everything(line)
    assert sent < 8_000_000
    assert server.app.heads == 0


async def test_a_head_just_below_the_limit_is_served(server: Server) -> None:
    line = await server.dial()
    received = await answer(line, GET[:-2] + b"X: " + b"a" * (MAX_HEAD_BYTES - 200) + b"\r\n\r\n")
    assert received.startswith(b"HTTP/1.1 200")


async def test_trailers_behind_a_body_are_limited_too(server: Server) -> None:
    line = await server.dial()
    line[1].write(b"POST /known HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n")
    await until(lambda: server.app.heads == 1)
    line[1].write(b"X: a\r\n" * (MAX_HEADERS + 1))
    assert b"431" in await everything_until_drained(server, line)


async def everything_until_drained(server: Server, line: Line) -> bytes:
    reading = asyncio.create_task(everything(line))
    await until(lambda: reading.done() or any(connection._is_refused for connection in server.connections._open))
    for _ in range(2):
        server.passes(LIMITS.drain)
    return await reading


async def test_a_silent_connection_ends(server: Server) -> None:
    line = await server.dial()
    server.passes(LIMITS.head - 0.1)
    assert not line[0].at_eof()
    server.passes(0.1)
    assert await everything(line) == b""


async def test_a_head_that_drips_ends(server: Server) -> None:
    line = await server.dial()
    connection = next(iter(server.connections._open))
    for byte in GET[:8]:
        seen = connection._head_bytes
        line[1].write(bytes([byte]))
        await until(lambda seen=seen: connection._head_bytes > seen)  # type: ignore[misc]
        server.passes(1)
    server.passes(2)
    assert (await everything_until_drained(server, line)).startswith(b"HTTP/1.1 408")


async def test_the_second_head_has_its_own_time(server: Server) -> None:
    line = await server.dial()
    await answer(line, GET)
    server.passes(LIMITS.idle - 1)
    assert (await answer(line, GET)).startswith(b"HTTP/1.1 200")
    connection = next(iter(server.connections._open))
    line[1].write(GET[:5])
    await until(lambda: connection._is_reading_head)
    server.passes(LIMITS.head - 1)
    assert not connection.transport.is_closing()
    server.passes(1)
    assert b"408" in await everything_until_drained(server, line)


async def test_blank_lines_do_not_keep_an_idle_connection(server: Server) -> None:
    line = await server.dial()
    await answer(line, GET)
    for _ in range(5):
        line[1].write(b"\r\n")
        await asyncio.sleep(0)
        server.passes(LIMITS.idle / 5)
    assert await everything(line) == b""


async def test_a_body_that_drips_ends_and_one_that_flows_does_not(server: Server) -> None:
    slow, steady = await server.dial(), await server.dial()
    for line in (slow, steady):
        line[1].write(b"POST /known HTTP/1.1\r\nContent-Length: 1600000\r\n\r\n")
    await until(lambda: server.app.heads == 2)
    first, second = server.connections._open
    for count in range(1, 9):
        if count < 4:
            slow[1].write(b"x")
        steady[1].write(b"x" * 200_000)
        await until(lambda count=count: first._body_bytes == min(count, 3) and second._body_bytes == count * 200_000)  # type: ignore[misc]
        server.passes(LIMITS.body / 4)
    assert (await answer(steady)).startswith(b"HTTP/1.1 200")
    assert (await everything_until_drained(server, slow)).startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize("path", [b"/refused", b"/"])
async def test_whoever_is_answered_cannot_keep_the_connection_with_the_rest_of_a_body(
    server: Server, path: bytes
) -> None:
    line = await server.dial()
    await answer(line, b"POST " + path + b" HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n")
    for _ in range(3):
        line[1].write(b"x" * 100)
        await asyncio.sleep(0)
        server.passes(LIMITS.drain / 3)
    assert await everything(line) == b""


async def test_a_long_call_is_not_disturbed(server: Server) -> None:
    line = await server.dial()
    line[1].write(b"GET /wait HTTP/1.1\r\n\r\n")
    await server.app.waiting.wait()
    for _ in range(10):
        server.passes(100)
    server.app.go.set()
    assert (await answer(line)).startswith(b"HTTP/1.1 200")


async def test_a_client_that_takes_nothing_of_its_answer_is_let_go(server: Server) -> None:
    line = await server.dial()
    connection = next(iter(server.connections._open))
    line[1].write(b"GET /large HTTP/1.1\r\n\r\n")
    await until(lambda: bool(connection._stalled_at))
    line[0]._transport.pause_reading()  # type: ignore[attr-defined]
    server.passes(LIMITS.write)
    server.passes(LIMITS.write)
    await until(lambda: not server.connections._open)


async def test_a_connection_too_many_takes_the_place_of_the_oldest_that_only_waits(server: Server) -> None:
    known = await server.dial()
    await answer(known, b"GET /known HTTP/1.1\r\n\r\n")
    server.ticks.now += 1
    silent = await server.dial()
    server.ticks.now += 1
    served = await server.dial()
    await answer(served, GET)
    newest = await server.dial()
    assert await everything(silent) == b""
    for line in (known, served, newest):
        assert (await answer(line, GET)).startswith(b"HTTP/1.1 200")
    assert len(server.connections._open) == LIMITS.connections


async def test_a_connection_too_many_is_refused_while_all_are_served(server: Server) -> None:
    lines = []
    for _ in range(LIMITS.connections):
        server.app.waiting.clear()
        lines.append(await server.dial())
        lines[-1][1].write(b"GET /wait HTTP/1.1\r\n\r\n")
        await server.app.waiting.wait()
    extra = await server.dial()
    received = await everything(extra)
    assert received.startswith(b"HTTP/1.1 503")
    assert b"REFLEXIO_MAX_CONNECTIONS" in received
    server.app.go.set()
    for line in lines:
        assert (await answer(line)).startswith(b"HTTP/1.1 200")
