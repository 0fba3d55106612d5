"""An assistant behind a real HTTP address on loopback: answers as told, counts, can stand still, fail and redirect."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

from tests import parcels


@dataclass(frozen=True)
class Raw:
    """Any answer at all."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


Respond = Callable[[dict[str, Any]], "dict[str, Any] | Raw"]


@dataclass
class Webhook:
    """`requests` are the bodies in the order they arrived, `headers` what came with each."""

    url: str = ""
    respond: Respond = parcels.reply
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    def take(self, body: dict[str, Any], headers: dict[str, str]) -> Raw:
        with self._lock:
            self.requests.append(body)
            self.headers.append(headers)
        made = self.respond(body)
        return made if isinstance(made, Raw) else Raw(body=json.dumps(made).encode())


@contextmanager
def webhook(respond: Respond = parcels.reply) -> Iterator[Webhook]:
    hook = Webhook(respond=respond)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # connections are kept
        disable_nagle_algorithm = True
        wbufsize = -1

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            made = hook.take(body, {name.lower(): value for name, value in self.headers.items()})
            try:
                self.send_response(made.status)
                for name, value in {"Content-Length": str(len(made.body)), **made.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(made.body)
                self.wfile.flush()
            except ConnectionError:  # the caller hung up
                self.close_connection = True

        def do_GET(self) -> None:
            raise AssertionError("nobody reads from a webhook")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name is http.server's
            """Quiet."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 256

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Callers that are killed say no goodbye."""

    server = Server(("127.0.0.1", 0), Handler)
    hook.url = f"http://127.0.0.1:{server.server_port}/rollout"
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield hook
    finally:
        server.shutdown()
        server.server_close()
