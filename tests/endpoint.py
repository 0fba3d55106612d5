"""An embeddings endpoint on loopback that does what a test wants: answer, fail, hang or talk nonsense."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WIDTH = 64
PATIENCE = 30.0


def bag_of_words(text: str, *, salt: str = "", width: int = WIDTH) -> list[float]:
    """Texts that share words are near each other; of another salt nothing is."""
    vector = [0.0] * width
    for word in re.findall(r"\w+", text.lower()):
        vector[int.from_bytes(blake2b((salt + word).encode(), digest_size=8).digest()) % width] += 1
    return vector if any(vector) else [1.0] + [0.0] * (width - 1)


class Endpoint:
    """`answer` makes the vectors of some texts; `status` other than 200 is an error; `hold` keeps all waiting."""

    def __init__(self) -> None:
        self.url = ""
        self.status = 200
        self.headers: dict[str, str] = {}
        self.answer: Callable[[list[str]], Any] = lambda texts: [bag_of_words(text) for text in texts]
        self.refuse: Callable[[list[str]], bool] = lambda texts: False
        self.seen: list[str] = []
        self._open = threading.Event()
        self._open.set()

    def hold(self) -> None:
        self._open.clear()

    def release(self) -> None:
        self._open.set()

    def reply(self, texts: list[str]) -> tuple[int, bytes]:
        self._open.wait(PATIENCE)
        if self.status != 200 or self.refuse(texts):
            return (self.status if self.status != 200 else 400), b'{"error": {"message": "no"}}'
        self.seen += texts
        made = self.answer(texts)
        if isinstance(made, bytes):
            return 200, made
        return 200, json.dumps({"data": [{"index": n, "embedding": each} for n, each in enumerate(made)]}).encode()


@contextmanager
def embeddings_endpoint() -> Iterator[Endpoint]:
    endpoint = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, content = endpoint.reply(asked["input"])
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **endpoint.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Tests are quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    endpoint.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        endpoint.release()
        server.shutdown()
        server.server_close()
        thread.join(PATIENCE)
