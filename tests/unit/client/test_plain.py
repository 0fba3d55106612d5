"""Plain HTTP as the client speaks it, against a server that says exactly these bytes."""

import asyncio
import gc
import io
import os
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import httpx
import pytest

from reflexio import AsyncReflexioClient, ReflexioClient, errors
from reflexio.client.http1 import Address, Reply
from reflexio.client.plain import AsyncPlain, Plain

BODY = b'{"success": true, "org_id": "acme"}'
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 35\r\n\r\n" + BODY
CLOSE = b"close"
SILENCE = b"silence"


class Server:
    """Answers each request with the next of the given bytes, and counts connections."""

    def __init__(self, *answers: bytes) -> None:
        self._answers = list(answers)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.connections = 0
        self.asked: list[bytes] = []
        self.heard, self.closed = threading.Event(), threading.Event()
        self._open: list[socket.socket] = []
        self._threads = ThreadPoolExecutor(20)
        self._threads.submit(self._accept)

    @property
    def address(self) -> Address:
        address = Address.of(self.url)
        assert address is not None
        return address

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(connection)
            self._threads.submit(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as incoming:
            while asked := self._request(incoming):
                self.asked.append(asked)
                self.heard.set()
                answer = self._answers.pop(0)
                if answer is SILENCE:
                    incoming.read(1)
                    return
                connection.sendall(answer.removesuffix(CLOSE))
                if answer.endswith(CLOSE):
                    break
        self.closed.set()

    @staticmethod
    def _request(incoming: io.BufferedIOBase) -> bytes:
        head = b""
        while line := incoming.readline():
            head += line
            if line == b"\r\n":
                length = int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0])
                return head + incoming.read(length)
        return b""

    def stop(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in self._open:
            each.close()
        self._threads.shutdown(wait=False)


@contextmanager
def serving(*answers: bytes) -> Iterator[Server]:
    server = Server(*answers)
    try:
        yield server
    finally:
        server.stop()


def in_order(server: Server, requests: int) -> list[Reply]:
    plain = Plain(server.address)
    try:
        return [plain.send(server.address.request("GET", "/x", {}, b""), 5, 5) for _ in range(requests)]
    finally:
        plain.close()


def awaited(server: Server, requests: int) -> list[Reply]:
    async def run() -> list[Reply]:
        plain = AsyncPlain(server.address)
        try:
            return [await plain.send(server.address.request("GET", "/x", {}, b""), 5, 5) for _ in range(requests)]
        finally:
            await plain.aclose()

    return asyncio.run(run())


both = pytest.mark.parametrize("call", [in_order, awaited])
Call = Callable[[Server, int], list[Reply]]


@both
@pytest.mark.parametrize(
    ("answer", "content"),
    [
        (OK, BODY),
        (b"HTTP/1.1 200 OK\r\ncontent-length:0\r\n\r\n", b""),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", b"hi"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=1\r\n0123456789\r\n0\r\n\r\n",
            b"abc0123456789",
        ),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n1\r\na\r\n0\r\nTrailer: x\r\n\r\n", b"a"),
    ],
)
def test_an_answer_is_read_and_the_connection_used_again(call: Call, answer: bytes, content: bytes) -> None:
    with serving(answer, answer, answer) as server:
        assert [reply.content for reply in call(server, 3)] == [content] * 3
        assert server.connections == 1


@both
@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\n\r\nall until the end" + CLOSE,
        b"HTTP/1.0 200 OK\r\nContent-Length: 17\r\n\r\nall until the end" + CLOSE,
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 17\r\n\r\nall until the end",
    ],
)
def test_a_connection_that_ends_with_its_answer_is_not_used_again(call: Call, answer: bytes) -> None:
    with serving(answer, answer) as server:
        assert [reply.content for reply in call(server, 2)] == [b"all until the end"] * 2
        assert server.connections == 2


@both
def test_headers_are_found_in_small_letters(call: Call) -> None:
    answer = b"HTTP/1.1 429 Too Many\r\nRETRY-AFTER:  7 \r\nContent-Length: 0\r\n\r\n"
    with serving(answer) as server:
        (reply,) = call(server, 1)
    assert (reply.status, reply.headers["retry-after"], reply.is_success) == (429, "7", False)


@both
@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (CLOSE, httpx.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\nContent-Le" + CLOSE, httpx.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf" + CLOSE, httpx.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab" + CLOSE, httpx.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nmany\r\nab" + CLOSE, httpx.RemoteProtocolError),
        (b"SSH-2.0-OpenSSH\r\n\r\n" + CLOSE, httpx.RemoteProtocolError),
        (b"HTTP/2 what\r\n\r\n" + CLOSE, httpx.RemoteProtocolError),
    ],
)
def test_half_an_answer_is_none(call: Call, answer: bytes, kind: type[Exception]) -> None:
    with serving(answer) as server, pytest.raises(kind):
        call(server, 1)


def test_a_server_that_says_nothing_is_not_waited_for_without_end() -> None:
    with serving(SILENCE, SILENCE) as server:
        request = server.address.request("GET", "/x", {}, b"")
        with pytest.raises(httpx.ReadTimeout):
            Plain(server.address).send(request, 0.05, 5)
        with pytest.raises(httpx.ReadTimeout):
            asyncio.run(AsyncPlain(server.address).send(request, 0.05, 5))


def test_a_server_that_drips_is_waited_for_no_longer_than_one_that_is_silent() -> None:
    drip = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = Address.of(f"http://127.0.0.1:{listener.getsockname()[1]}")
        assert address is not None
        done = threading.Event()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(drip)
                while not done.wait(0.05):
                    connection.sendall(b"x")

        with ThreadPoolExecutor(1) as threads:
            serving = threads.submit(serve)
            try:
                with pytest.raises(httpx.ReadTimeout):
                    Plain(address).send(b"GET / HTTP/1.1\r\n\r\n", 0.3, 5)
            finally:
                done.set()
            with suppress(ConnectionError):
                serving.result()


def test_nobody_at_the_address_was_never_sent_anything() -> None:
    with serving() as server:
        address = server.address
    with pytest.raises(httpx.ConnectError):
        Plain(address).send(b"", 5, 5)
    with pytest.raises(httpx.ConnectError):
        asyncio.run(AsyncPlain(address).send(b"", 5, 5))


def test_a_connection_that_the_server_closed_while_idle_is_made_again() -> None:
    with serving(OK + CLOSE, OK) as server, ReflexioClient(url_endpoint=server.url, retries=0) as client:
        assert client.whoami().success
        assert server.closed.wait(5)
        assert client.whoami().success
        assert server.connections == 2


async def test_the_same_for_one_that_awaits() -> None:
    with serving(OK + CLOSE, OK) as server:
        async with AsyncReflexioClient(url_endpoint=server.url, retries=0) as client:
            assert (await client.whoami()).success
            await asyncio.to_thread(server.closed.wait, 5)
            while server.connections == 1:
                assert (await client.whoami()).success
        assert server.connections == 2


def test_one_client_serves_several_loops() -> None:
    with serving(OK, OK) as server, warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # a loop that is gone cannot close what was open in it
        client = AsyncReflexioClient(url_endpoint=server.url, retries=0)
        for _ in range(2):
            assert asyncio.run(client.whoami()).success
        del client
        gc.collect()


async def test_a_call_that_is_given_up_takes_its_connection_along() -> None:
    with serving(SILENCE, OK) as server:
        async with AsyncReflexioClient(url_endpoint=server.url, retries=0) as client:
            given_up = asyncio.create_task(client.whoami())
            await asyncio.to_thread(server.heard.wait, 5)
            given_up.cancel()
            with pytest.raises(asyncio.CancelledError):
                await given_up
            assert (await client.whoami()).success
        assert server.connections == 2


def test_threads_share_a_client() -> None:
    with (
        serving(*[OK] * 200) as server,
        ReflexioClient(url_endpoint=server.url, retries=0) as client,
        ThreadPoolExecutor(8) as threads,
    ):
        assert all(answer.success for answer in threads.map(lambda _: client.whoami(), range(200)))
        assert server.connections <= 8


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.skipif(sys.platform == "win32", reason="there are no forks on Windows")
def test_a_forked_process_makes_connections_of_its_own() -> None:
    with serving(OK, OK, OK) as server, ReflexioClient(url_endpoint=server.url, retries=0) as client:
        assert client.whoami().success
        child = os.fork()
        if child == 0:
            os._exit(0 if client.whoami().success else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert client.whoami().success
        assert server.connections == 2


# --- what is sent


def test_a_request_is_whole() -> None:
    with serving(OK) as server, ReflexioClient("key", f"{server.url}/behind/", retries=0) as client:
        client.get_usage(days=3)
        assert server.asked == [
            b"GET /behind/api/usage?days=3 HTTP/1.1\r\nHost: " + server.url.removeprefix("http://").encode() + b"\r\n"
            b"Content-Type: application/json\r\nAuthorization: Bearer key\r\nContent-Length: 0\r\n\r\n"
        ]


@pytest.mark.parametrize("key", ["two\r\nX-Lines: 1", "a\0b", "schlüssel"])
def test_a_header_cannot_hold_another(key: str) -> None:
    with serving() as server, ReflexioClient(url_endpoint=server.url) as client:
        with pytest.raises(errors.InvalidRequest, match="Idempotency-Key may hold printable ASCII"):
            client.publish_interaction("ann", [{"content": "x"}], idempotency_key=key)
        assert server.connections == 0


def test_a_key_read_from_a_file_may_end_with_its_line() -> None:
    assert ReflexioClient("key\n").endpoint.api_key == "key"


@pytest.mark.parametrize(
    "url", ["https://reflexio.test", "http://ann:secret@reflexio.test", "reflexio.test", "http://", "http://a:b:c"]
)
def test_all_but_plain_http_is_left_to_httpx(url: str) -> None:
    assert Address.of(url) is None


def test_so_is_what_goes_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.test:3128")
    monkeypatch.setenv("no_proxy", "near.test")
    assert Address.of("http://reflexio.test") is None
    assert Address.of("http://near.test") is not None


@pytest.mark.parametrize("variable", ["http_proxy", "all_proxy"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "127.0.0.2"])
def test_no_proxy_leads_to_this_machine(monkeypatch: pytest.MonkeyPatch, variable: str, host: str) -> None:
    monkeypatch.setenv(variable, "http://proxy.test:3128")
    assert Address.of(f"http://{host}:8081") is not None


def test_a_proxy_that_cannot_be_used_matters_only_to_who_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("all_proxy", "socks5://127.0.0.1:9")
    with serving(OK) as server, ReflexioClient(url_endpoint=server.url, retries=0) as here:
        assert here.whoami().success
    with ReflexioClient(url_endpoint="https://127.0.0.1:9", retries=0) as here, pytest.raises(errors.ServerUnreachable):
        here.whoami()
    with ReflexioClient(url_endpoint="http://reflexio.test", fail_open=True) as there:
        with pytest.raises(errors.InvalidRequest, match="proxy of the environment"):
            there.whoami()
        assert not there.publish_interaction("ann", [{"content": "x"}]).success


async def test_a_closed_client_makes_no_connection() -> None:
    with serving() as server:
        with ReflexioClient(url_endpoint=server.url, fail_open=True) as client:
            pass
        async with AsyncReflexioClient(url_endpoint=server.url) as awaited:
            pass
        with pytest.raises(errors.ClientClosed):
            client.whoami()
        with pytest.raises(errors.ClientClosed):
            await awaited.whoami()
        assert not client.publish_interaction("ann", [{"content": "x"}]).success
        assert server.connections == 0


def test_an_address_may_be_of_the_sixth_version() -> None:
    address = Address.of("http://[::1]:8081")
    assert address is not None
    assert (address.host, address.port, address.authority) == ("::1", 8081, "[::1]:8081")
