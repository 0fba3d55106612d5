"""Connections as a user notices them, against a server that sends exactly these bytes."""

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
from reflexio.client.endpoint import AsyncHttpClients, Endpoint

BODY = b'{"success": true, "org_id": "acme"}'
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 35\r\n\r\n" + BODY
CLOSE = b"close"
SILENCE = b"silence"


class Server:
    """Answers each request with the next of the given responses, and counts connections."""

    def __init__(self, *responses: bytes) -> None:
        self._responses = list(responses)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.connections = 0
        self.requests: list[bytes] = []
        self.heard, self.closed = threading.Event(), threading.Event()
        self._open: list[socket.socket] = []
        self._threads = ThreadPoolExecutor(20)
        self._threads.submit(self._accept)

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
            while request := self._request(incoming):
                self.requests.append(request)
                self.heard.set()
                response = self._responses.pop(0)
                if response is SILENCE:
                    incoming.read(1)
                    return
                connection.sendall(response.removesuffix(CLOSE))
                if response.endswith(CLOSE):
                    break
        self.closed.set()

    @staticmethod
    def _request(incoming: io.BufferedIOBase) -> bytes:
        head = b""
        while line := incoming.readline():
            head += line
            if line == b"\r\n":
                _, _, rest = head.lower().partition(b"content-length: ")
                return head + incoming.read(int(rest.split(b"\r\n")[0] or 0))
        return b""

    def stop(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            connection.close()
        self._threads.shutdown(wait=False)


@contextmanager
def serving(*responses: bytes) -> Iterator[Server]:
    server = Server(*responses)
    try:
        yield server
    finally:
        server.stop()


def call_in_order(url: str, calls: int, timeout: float = 5) -> list[str]:
    with ReflexioClient(url_endpoint=url, retries=0, timeout=timeout) as client:
        return [client.whoami().org_id for _ in range(calls)]


def call_awaiting(url: str, calls: int, timeout: float = 5) -> list[str]:
    async def run() -> list[str]:
        async with AsyncReflexioClient(url_endpoint=url, retries=0, timeout=timeout) as client:
            return [(await client.whoami()).org_id for _ in range(calls)]

    return asyncio.run(run())


both = pytest.mark.parametrize("call", [call_in_order, call_awaiting])
Call = Callable[..., list[str]]
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@both
@pytest.mark.parametrize(
    "response",
    [
        OK,
        b"HTTP/1.1 100 Continue\r\n\r\n" + OK,
        CHUNKED + b"3\r\n" + BODY[:3] + b"\r\n20;x=1\r\n" + BODY[3:] + b"\r\n0\r\n\r\n",
    ],
    ids=["length", "continue", "chunked"],
)
def test_a_response_is_read_and_the_connection_used_again(call: Call, response: bytes) -> None:
    with serving(response, response, response) as server:
        assert call(server.url, 3) == ["acme"] * 3
        assert server.connections == 1


@both
@pytest.mark.parametrize(
    "response",
    [
        b"HTTP/1.1 200 OK\r\n\r\n" + BODY + CLOSE,
        b"HTTP/1.0 200 OK\r\nContent-Length: 35\r\n\r\n" + BODY + CLOSE,
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 35\r\n\r\n" + BODY,
    ],
)
def test_a_connection_that_ends_with_its_response_is_not_used_again(call: Call, response: bytes) -> None:
    with serving(response, response) as server:
        assert call(server.url, 2) == ["acme"] * 2
        assert server.connections == 2


@both
def test_headers_are_found_in_any_case(call: Call) -> None:
    response = b"HTTP/1.1 429 Too Many\r\nRETRY-AFTER:  7 \r\nContent-Length: 0\r\n\r\n"
    with serving(response) as server, pytest.raises(errors.RateLimited) as limited:
        call(server.url, 1)
    assert limited.value.retry_after == 7


@both
@pytest.mark.parametrize(
    "response",
    [
        CLOSE,
        b"HTTP/1.1 200 OK\r\nContent-Le" + CLOSE,
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf" + CLOSE,
        CHUNKED + b"5\r\nab" + CLOSE,
        CHUNKED + b"many\r\nab" + CLOSE,
        CHUNKED + b"-5\r\nab" + CLOSE,
        b"SSH-2.0-OpenSSH\r\n\r\n" + CLOSE,
        b"HTTP/2 what\r\n\r\n" + CLOSE,
    ],
)
def test_half_a_response_is_none(call: Call, response: bytes) -> None:
    with serving(response) as server, pytest.raises(errors.ServerUnreachable, match="RemoteProtocolError"):
        call(server.url, 1)


@both
def test_a_server_that_says_nothing_is_not_waited_for_without_end(call: Call) -> None:
    with serving(SILENCE) as server, pytest.raises(errors.ServerUnreachable, match="ReadTimeout"):
        call(server.url, 1, timeout=0.05)


@both
def test_a_server_that_drips_is_waited_for_no_longer_than_one_that_is_silent(call: Call) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        done = threading.Event()

        def drip() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
                while not done.wait(0.05):
                    connection.sendall(b"x")

        with ThreadPoolExecutor(1) as threads:
            dripping = threads.submit(drip)
            try:
                with pytest.raises(errors.ServerUnreachable, match="ReadTimeout"):
                    call(f"http://127.0.0.1:{listener.getsockname()[1]}", 1, timeout=0.3)
            finally:
                done.set()
            with suppress(ConnectionError):
                dripping.result()


@both
def test_an_address_without_a_server_was_never_sent_anything(call: Call) -> None:
    with serving() as server:
        url = server.url
    with pytest.raises(errors.ServerUnreachable, match="ConnectError"):
        call(url, 1)


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


def test_a_call_that_the_server_cut_off_is_repeated_only_when_that_is_safe() -> None:
    with serving(CLOSE, OK) as server, ReflexioClient(url_endpoint=server.url, retries=1) as client:
        assert client.whoami().success
        assert server.connections == 2
    with serving(CLOSE, OK) as server, ReflexioClient(url_endpoint=server.url, retries=1) as client:
        with pytest.raises(errors.ServerUnreachable):
            client.delete_session("s", wait_for_response=True)
        assert server.connections == 1


def test_one_client_serves_several_loops() -> None:
    with serving(OK, OK) as server, warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # a loop that is gone cannot close what was open in it
        client = AsyncReflexioClient(url_endpoint=server.url, retries=0)
        for _ in range(2):
            assert asyncio.run(client.whoami()).success
        del client
        gc.collect()


def test_the_connections_of_a_loop_that_is_gone_are_not_kept() -> None:
    clients = AsyncHttpClients(Endpoint("http://127.0.0.1:9", ""), None)

    async def get() -> httpx.AsyncClient:
        return clients.get()

    first, second = asyncio.run(get()), asyncio.run(get())
    assert first is not second
    assert list(clients._clients.values()) == [second]


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
        assert all(response.success for response in threads.map(lambda _: client.whoami(), range(200)))
        assert server.connections <= 16


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
        head, _, body = server.requests[0].partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    assert (first, body) == ("GET /behind/api/usage?days=3 HTTP/1.1", b"")
    assert headers["host"] == server.url.removeprefix("http://")
    assert (headers["content-type"], headers["authorization"]) == ("application/json", "bearer key")


@pytest.mark.parametrize("key", ["two\r\nX-Lines: 1", "a\0b", "schlüssel"])
def test_a_header_cannot_hold_another(key: str) -> None:
    with serving() as server, ReflexioClient(url_endpoint=server.url) as client:
        with pytest.raises(errors.InvalidRequest, match="Idempotency-Key may hold printable ASCII"):
            client.publish_interaction("ann", [{"content": "x"}], idempotency_key=key)
        assert server.connections == 0


def test_a_key_read_from_a_file_may_end_with_its_line() -> None:
    assert ReflexioClient("key\n").endpoint.api_key == "key"


# --- proxies


@pytest.mark.parametrize("variable", ["http_proxy", "all_proxy"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_no_proxy_leads_to_this_machine(monkeypatch: pytest.MonkeyPatch, variable: str, host: str) -> None:
    monkeypatch.setenv(variable, "http://127.0.0.1:9")
    with serving(OK) as server:
        assert call_in_order(server.url.replace("127.0.0.1", host), 1) == ["acme"]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "127.0.0.2"])
def test_these_names_mean_this_machine(host: str) -> None:
    assert not Endpoint(f"http://{host}:8081", "").open_client(httpx.Client, None).trust_env


@both
def test_other_servers_are_called_through_the_proxy(monkeypatch: pytest.MonkeyPatch, call: Call) -> None:
    with serving(OK) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", "near.test")
        assert call("http://reflexio.test", 1) == ["acme"]
        assert proxy.requests[0].startswith(b"GET http://reflexio.test/api/whoami HTTP/1.1")
        with pytest.raises(errors.ServerUnreachable, match="ConnectError"):
            call("http://near.test", 1)


def test_a_proxy_that_cannot_be_used_matters_only_to_those_who_need_it(monkeypatch: pytest.MonkeyPatch) -> None:
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
