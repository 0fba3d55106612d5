"""What the pass-through adds to a call: directly to a scripted model server on loopback, against through Reflexio.

Calls alternate, so that a slow minute of the machine is in both. Every message is new, as those of people are.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import httpx

from reflexio import ReflexioClient
from reflexio.server.process import running_server
from tests.bench.report import Figure, milliseconds
from tests.model_server import (
    STREAM_END,
    STREAM_HEAD,
    ModelServer,
    chunk,
    deltas,
    events,
    json_answer,
    model_server,
    said,
)

CALLS, WARM_UP = 200, 20
USER = "amira"
THINGS = ("parcel", "invoice", "refund", "table", "booking", "lamp", "train", "ticket", "garden", "bicycle", "kettle")
STREAMED = [
    STREAM_HEAD + chunk(events(*deltas("With ", "your "), done=False)),
    chunk(events(*deltas("neighbour."))),
    STREAM_END,
]


def gateway() -> list[Figure]:
    with model_server() as model, tempfile.TemporaryDirectory() as folder:
        model.answer = lambda call: STREAMED if call.json.get("stream") else [json_answer(said("With your neighbour."))]
        with running_server(Path(folder), {"REFLEXIO_GATEWAY_URL": model.url}) as url:
            _learn(url)
            with httpx.Client(timeout=30, trust_env=False) as http:
                return _measure(http, model, url)


def _learn(url: str) -> None:
    with ReflexioClient(url_endpoint=url) as client:
        facts = [f"Asked about the {thing} of flat {number}" for number in range(20) for thing in THINGS]
        client.add_user_profile([{"user_id": USER, "content": fact} for fact in facts])
        client.add_user_profile([{"user_id": USER, "content": "Is vegan", "scope": "always"}])
        while client.storage_stats(USER).unembedded_count:
            time.sleep(0.1)


def _measure(http: httpx.Client, model: ModelServer, url: str) -> list[Figure]:
    def post(base: str, number: int, *, stream: bool) -> float:
        """Seconds to the first byte. Its text is new to the server: vectors of texts that it knows are cached."""
        text = (
            f"What about the {THINGS[number % len(THINGS)]} number {number}{' today' * stream}, and when does it come?"
        )
        history = [{"role": "system", "content": "Be kind. " * 100}, {"role": "user", "content": text}]
        body = {"model": "m", "user": USER, "messages": history, "stream": stream}
        began = time.perf_counter()
        with http.stream("POST", f"{base}/chat/completions", json=body) as answer:
            answer.raise_for_status()
            pieces = answer.iter_raw()
            next(pieces)
            seconds = time.perf_counter() - began
            for _ in pieces:
                pass  # to the end: a connection that is closed before is opened anew for the next call
        return seconds

    figures: list[Figure] = []
    for name, stream in (("answer", False), ("first byte of a stream", True)):
        direct, through = _alternating(
            lambda number, stream=stream: post(model.url, number, stream=stream),  # type: ignore[misc]
            lambda number, stream=stream: post(f"{url}/v1", number, stream=stream),  # type: ignore[misc]
        )
        added = [after - before for before, after in zip(direct, through, strict=True)]
        figures += [
            Figure(f"{name}, direct, p50", milliseconds(direct)[0], "ms"),
            Figure(f"{name}, through, p50", milliseconds(through)[0], "ms"),
            Figure(f"{name}, added, p50", statistics.median(added) * 1000, "ms", 15),
            Figure(f"{name}, added, p95", milliseconds(added)[1], "ms"),
        ]
    has_context = sum(b"Is vegan" in call.body for call in model.calls)
    return [
        *figures,
        Figure("calls with their context", has_context / (len(model.calls) / 2), "", 1, more_is_better=True),
    ]


def _alternating(direct: Callable[[int], float], through: Callable[[int], float]) -> tuple[list[float], list[float]]:
    pairs = [(direct(number), through(number)) for number in range(CALLS + WARM_UP)][WARM_UP:]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]
