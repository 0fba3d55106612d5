"""A model server on loopback that answers with exactly the bytes that a test wants, and keeps what it was sent.

with model_server() as model:
    model.answer = lambda call: [json_answer({"choices": []})]
    ...                      # REFLEXIO_GATEWAY_URL=model.url
assert model.calls[0].json["messages"]
"""

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PATIENCE = 20.0
Piece = bytes | threading.Event


class HangUp(Exception):
    """Raised by an answer: the connection is closed in the middle of it."""


@dataclass(frozen=True)
class ModelCall:
    """A call as it arrived. Names of headers are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def json_answer(document: Any, status: int = 200, **headers: str) -> bytes:
    """A whole HTTP answer. `x_y` is the header `x-y`."""
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    given = {"content-type": "application/json", **{name.replace("_", "-"): text for name, text in headers.items()}}
    lines = "".join(f"{name}: {text}\r\n" for name, text in given.items())
    return f"HTTP/1.1 {status} OK\r\n{lines}content-length: {len(body)}\r\n\r\n".encode() + body


STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
STREAM_END = b"0\r\n\r\n"


def chunk(body: bytes) -> bytes:
    return f"{len(body):x}\r\n".encode() + body + b"\r\n"


def events(*documents: Any, done: bool = True) -> bytes:
    """Server-sent events, one for each document."""
    lines = [f"data: {json.dumps(document)}\n\n" for document in documents]
    return "".join([*lines, "data: [DONE]\n\n"] if done else lines).encode()


def said(text: str | None, **message: Any) -> dict[str, Any]:
    """A chat completion with one choice."""
    answer = {"role": "assistant", "content": text, **message}
    return {"id": "c-1", "object": "chat.completion", "choices": [{"index": 0, "message": answer}]}


def deltas(*texts: str) -> list[dict[str, Any]]:
    """The events of a streamed chat completion."""
    return [{"id": "c-1", "choices": [{"index": 0, "delta": {"content": text}}]} for text in texts]


@dataclass
class ModelServer:
    """`answer` makes the pieces of the answer to a call; an Event among them is waited for."""

    url: str = ""
    answer: Callable[[ModelCall], Iterable[Piece]] = lambda call: [json_answer(said("Yes."))]
    calls: list[ModelCall] = field(default_factory=list)
    has_lost_a_caller: threading.Event = field(default_factory=threading.Event)

    def reset(self) -> None:
        self.answer = lambda call: [json_answer(said("Yes."))]
        self.calls.clear()
        self.has_lost_a_caller.clear()


@contextmanager
def model_server() -> Iterator[ModelServer]:
    model = ModelServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one_request(self) -> None:
            try:
                self.raw_requestline = self.rfile.readline(65_537)
            except OSError:
                self.raw_requestline = b""
            if not self.raw_requestline or not self.parse_request():
                self.close_connection = True
                return
            headers = {name.lower(): text for name, text in self.headers.items()}
            body = self.rfile.read(int(headers.get("content-length", 0)))
            call = ModelCall(self.command, self.path, headers, body)
            model.calls.append(call)
            try:
                for piece in model.answer(call):
                    if isinstance(piece, threading.Event):
                        assert piece.wait(PATIENCE)
                        continue
                    self.wfile.write(piece)
                    self.wfile.flush()
            except HangUp:
                self.close_connection = True
            except OSError:
                model.has_lost_a_caller.set()
                self.close_connection = True

        def log_message(self, *_: Any) -> None:
            """Tests are quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    model.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()
        thread.join(PATIENCE)
