"""An embeddings endpoint on loopback that speaks OpenAI's protocol and can be told to misbehave."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from reflexio.providers.scripted import ScriptedEmbedder

Answer = tuple[int, bytes]


@dataclass
class Endpoint:
    """`answer` makes the reply from the request's body; what was asked is kept."""

    url: str
    answer: Callable[[dict[str, Any]], Answer]
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


def well_behaved(body: dict[str, Any], *, dimensions: int = 64) -> Answer:
    """Vectors of the scripted twin, three times too long and in reverse order: the index says whose is whose."""
    rows = asyncio.run(ScriptedEmbedder(dimensions=dimensions).embed(body["input"])) * 3
    data = [{"index": index, "embedding": row} for index, row in enumerate(rows.tolist())]
    return 200, json.dumps({"data": data[::-1]}).encode()


class Server(ThreadingHTTPServer):
    request_queue_size = 128  # callers at once; five are the default, and the sixth is turned away


@contextmanager
def endpoint(answer: Callable[[dict[str, Any]], Answer] = well_behaved) -> Iterator[Endpoint]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            served.bodies.append({"path": self.path, **body})
            served.headers.append({name.lower(): value for name, value in self.headers.items()})
            status, content = served.answer(body)
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name is http.server's
            """Quiet."""

    server = Server(("127.0.0.1", 0), Handler)
    served = Endpoint(f"http://127.0.0.1:{server.server_port}/v1", answer)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
