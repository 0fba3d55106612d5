"""A chat model on loopback that speaks OpenAI's protocol, answers as told, and counts.

    with scripted_model([{"playbooks": []}, Failure(429)]) as model:
        ...                     # OPENAI_BASE_URL=model.url, OPENAI_API_KEY=anything
    assert model.calls == 2

`answers` are used up in order; then `otherwise` answers, which finds nothing. Either may be a function of what was
asked. Answers can be appended while the server runs.
"""

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import ceil
from threading import Event, Lock, Thread
from typing import Any


@dataclass(frozen=True)
class Failure:
    """An HTTP error as OpenAI words it."""

    status: int
    message: str = "scripted"
    code: str = ""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Refusal:
    """The model declines."""

    text: str = "I'm sorry, I can't help with that."


@dataclass(frozen=True)
class Filtered:
    """The provider's content filter stopped the answer."""


@dataclass(frozen=True)
class Spoken:
    """Plain words where a structure was asked for."""

    text: str


@dataclass(frozen=True)
class Raw:
    """Any bytes at all."""

    body: bytes
    status: int = 200
    content_type: str = "application/json"
    encoding: str = ""


@dataclass(frozen=True)
class Late:
    """An answer that takes its time, in seconds."""

    seconds: float
    answer: "Answer"


Answer = dict[str, Any] | list[Any] | str | Failure | Refusal | Filtered | Spoken | Raw | Late
"""Data or text for the structure asked for (text may be broken JSON), or one of the above."""


@dataclass(frozen=True)
class Asked:
    """One request as it arrived."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    prompt_tokens: int

    @property
    def instructions(self) -> str:
        return self._said_by("system", "developer")

    @property
    def case(self) -> str:
        return self._said_by("user")

    @property
    def images(self) -> list[str]:
        parts = [part for message in self._messages for part in _parts(message.get("content"))]
        return [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the answer, asked for as a tool or as a response format."""
        for tool in self.body.get("tools", ()):
            return dict(tool["function"]["parameters"])
        return dict((self.body.get("response_format") or {}).get("json_schema", {}).get("schema", {}))

    @property
    def wants(self) -> frozenset[str]:
        """The names of the fields asked for: tells one kind of question from another."""
        return frozenset(self.schema.get("properties", ()))

    @property
    def _messages(self) -> list[dict[str, Any]]:
        return list(self.body.get("messages", ()))

    def _said_by(self, *roles: str) -> str:
        said = [part for each in self._messages if each["role"] in roles for part in _parts(each.get("content"))]
        return "\n".join(part["text"] for part in said if part["type"] == "text")


Respond = Callable[[Asked], Answer]


def nothing(asked: Asked) -> Answer:
    """Finds nothing: an empty list for every field that must be there."""
    return {name: [] for name in asked.schema.get("required", ())}


@dataclass
class ScriptedModel:
    """`latency` seconds pass before every answer. `requests` keeps what was asked, in order of arrival."""

    url: str
    answers: deque[Answer | Respond]
    otherwise: Answer | Respond = nothing
    latency: float = 0.0
    requests: list[Asked] = field(default_factory=list)
    stopping: Event = field(default_factory=Event)
    _lock: Lock = field(default_factory=Lock)

    @property
    def calls(self) -> int:
        return len(self.requests)

    @property
    def prompt_tokens(self) -> int:
        return sum(asked.prompt_tokens for asked in self.requests)

    def take(self, asked: Asked) -> Answer:
        with self._lock:
            self.requests.append(asked)
            answer = self.answers.popleft() if self.answers else self.otherwise
        return answer(asked) if callable(answer) else answer


@contextmanager
def scripted_model(
    answers: Iterable[Answer | Respond] = (), *, otherwise: Answer | Respond = nothing, latency: float = 0.0
) -> Iterator[ScriptedModel]:
    """A running model; it is stopped at the end, whatever it was about to say."""
    server = _Server(("127.0.0.1", 0), _Handler)
    url = f"http://127.0.0.1:{server.server_port}/v1"
    server.model = ScriptedModel(url, deque(answers), otherwise=otherwise, latency=latency)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server.model
    finally:
        server.model.stopping.set()
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    request_queue_size = 256
    model: ScriptedModel


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # connections are kept, as with a real provider
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _Server

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers["Content-Length"]))
        body = json.loads(sent)
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.path, headers, body, _tokens(_prompt(body)))
        model = self.server.model
        answer = model.take(asked)
        wait = model.latency
        if isinstance(answer, Late):
            wait, answer = wait + answer.seconds, answer.answer
        if wait and model.stopping.wait(wait):
            self.close_connection = True
            return
        self._send(asked, answer)

    def _send(self, asked: Asked, answer: Answer) -> None:
        raw, headers = _encoded(asked, answer)
        try:
            self.send_response(raw.status)
            for name, value in {"Content-Type": raw.content_type, **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(raw.body)))
            self.end_headers()
            self.wfile.write(raw.body)
            self.wfile.flush()
        except ConnectionError:  # the caller hung up: it had waited or read enough
            self.close_connection = True

    def finish(self) -> None:
        try:
            super().finish()
        except ConnectionError:
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name is http.server's
        """Quiet."""


def _encoded(asked: Asked, answer: Answer) -> tuple[Raw, dict[str, str]]:
    match answer:
        case Raw(encoding=encoding):
            return answer, {"Content-Encoding": encoding} if encoding else {}
        case Failure(status, message, code, headers):
            error = {"error": {"message": message, "type": code or "scripted_error", "code": code or None}}
            return Raw(json.dumps(error).encode(), status), headers
        case _ if asked.body.get("stream"):
            return Raw(_chunks(_completion(asked, answer)), content_type="text/event-stream"), {}
        case _:
            return Raw(json.dumps(_completion(asked, answer)).encode()), {}


def _chunks(completion: dict[str, Any]) -> bytes:
    """The same answer as a stream: a word at a time, then how it ended, then what it cost."""
    (choice,) = completion.pop("choices")
    usage = completion.pop("usage")
    message = choice["message"]
    words = re.findall(r"\s*\S+|\s+$", message.pop("content", None) or "")
    calls = [{"index": at, **call} for at, call in enumerate(message.pop("tool_calls", ()))]
    deltas = [
        {"role": "assistant"},
        *({"content": word} for word in words),
        *({"tool_calls": [call]} for call in calls),
    ]
    choices = [[{"index": 0, "delta": delta, "finish_reason": None}] for delta in deltas]
    choices.append([{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}])
    events = [{**completion, "object": "chat.completion.chunk", "choices": each, "usage": None} for each in choices]
    events.append({**events[0], "choices": [], "usage": usage})
    return b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in events) + b"data: [DONE]\n\n"


def _completion(asked: Asked, answer: Answer) -> dict[str, Any]:
    message, finish = _message(asked, answer)
    completion = _tokens(json.dumps(message))
    usage = {"prompt_tokens": asked.prompt_tokens, "completion_tokens": completion}
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": asked.body.get("model", "scripted"),
        "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}],
        "usage": {**usage, "total_tokens": asked.prompt_tokens + completion},
    }


def _message(asked: Asked, answer: Answer) -> tuple[dict[str, Any], str]:
    match answer:
        case Refusal(text):
            return {"content": None, "refusal": text}, "stop"
        case Filtered():
            return {"content": None}, "content_filter"
        case Spoken(text):
            return {"content": text}, "stop"
        case _:
            text = answer if isinstance(answer, str) else json.dumps(answer)
    for tool in asked.body.get("tools", ()):
        call = {"id": "call-1", "type": "function"}
        return {
            "content": None,
            "tool_calls": [{**call, "function": {"name": _name(tool), "arguments": text}}],
        }, "tool_calls"
    return {"content": text}, "stop"


def _name(tool: dict[str, Any]) -> str:
    return str(tool["function"]["name"])


def _parts(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(content or ())


def _prompt(body: dict[str, Any]) -> str:
    """All that a model reads: the messages, the tools and the response format. Pictures count elsewhere."""
    messages = [_readable(message) for message in body.get("messages", ())]
    schemas = [body[name] for name in ("tools", "response_format") if name in body]
    return "".join(messages) + "".join(json.dumps(each, ensure_ascii=False) for each in schemas)


def _readable(message: dict[str, Any]) -> str:
    words = "".join(part.get("text", "") for part in _parts(message.get("content")))
    return words + "".join(call["function"]["arguments"] for call in message.get("tool_calls") or ())


def _tokens(text: str) -> int:
    return ceil(len(text) / 4)
