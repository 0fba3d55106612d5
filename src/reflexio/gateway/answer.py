"""A model's answer: its text and the tools that it wants called, read from JSON or from server-sent events.

It is read beside the bytes that pass through, up to a bound, and what is not understood is passed over.
"""

import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from reflexio.gateway.prompt import ModelToolCall, Protocol, content_text, tool_calls

MOST_BYTES = 4 * 1024 * 1024
"""Bytes of an answer that are kept for publishing. The caller gets all of them."""
READABLE_ENCODINGS = ("gzip", "deflate", "identity")
GZIP_OR_ZLIB = 47
EVENT_STREAM = "text/event-stream"


@dataclass(frozen=True)
class ModelAnswer:
    """What a model said."""

    text: str = ""
    calls: tuple[ModelToolCall, ...] = ()


class AnswerBytes:
    """The beginning of an answer, without its compression."""

    def __init__(self, encoding: str) -> None:
        self._parts: list[bytes] = []
        self._room = MOST_BYTES
        self._is_readable = encoding in ("", *READABLE_ENCODINGS)
        self._unpack = zlib.decompressobj(GZIP_OR_ZLIB) if encoding in ("gzip", "deflate") else None

    def add(self, chunk: bytes) -> None:
        if not self._is_readable or self._room <= 0:
            return
        if self._unpack is not None:
            try:
                chunk = self._unpack.decompress(chunk, self._room)
            except zlib.error:
                self._is_readable = False
                return
        self._parts.append(chunk[: self._room])
        self._room -= len(chunk)

    @property
    def content(self) -> bytes:
        return b"".join(self._parts) if self._is_readable else b""


def read_answer(protocol: Protocol, content_type: str, body: bytes) -> ModelAnswer:
    """The first choice of an answer. Empty when there is none, or nothing of it is understood."""
    if content_type.partition(";")[0].strip().lower() == EVENT_STREAM:
        events = list(_events(body))
        return _chat_stream(events) if protocol is Protocol.CHAT else _responses_stream(events)
    document = _parse(body)
    return _chat(document) if protocol is Protocol.CHAT else _output(document.get("output"))


def _parse(text: bytes | str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _events(body: bytes) -> Iterator[dict[str, Any]]:
    """The data of each whole event. An event may have several lines of data."""
    data: list[str] = []
    for line in body.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            if event := _parse("\n".join(data)):
                yield event
            data = []


def _chat(document: dict[str, Any]) -> ModelAnswer:
    message = _first_choice(document).get("message")
    if not isinstance(message, dict):
        return ModelAnswer()
    text = content_text(message.get("content")) or content_text(message.get("refusal"))
    return ModelAnswer(text, tool_calls(message.get("tool_calls")))


def _first_choice(document: dict[str, Any]) -> dict[str, Any]:
    """With several choices the first: which one a person saw is not known."""
    choices = document.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict) and choice.get("index", 0) == 0:
            return choice
    return {}


@dataclass
class _CallParts:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


def _chat_stream(events: list[dict[str, Any]]) -> ModelAnswer:
    text: list[str] = []
    calls: dict[int, _CallParts] = {}
    for event in events:
        delta = _first_choice(event).get("delta")
        if not isinstance(delta, dict):
            continue
        text.append(content_text(delta.get("content")) or content_text(delta.get("refusal")))
        fragments = delta.get("tool_calls")
        for fragment in fragments if isinstance(fragments, list) else ():
            if isinstance(fragment, dict):
                _add_fragment(calls, fragment)
    whole = (ModelToolCall(parts.id, parts.name, "".join(parts.arguments)) for parts in calls.values())
    return ModelAnswer("".join(text), tuple(whole))


def _add_fragment(calls: dict[int, _CallParts], fragment: dict[str, Any]) -> None:
    index = fragment.get("index", len(calls))
    parts = calls.setdefault(index if isinstance(index, int) else len(calls), _CallParts())
    (found,) = tool_calls([fragment]) or (ModelToolCall("", "", ""),)
    parts.id = parts.id or found.id
    parts.name = parts.name or found.name
    parts.arguments.append(found.arguments)


def _responses_stream(events: list[dict[str, Any]]) -> ModelAnswer:
    """The whole response of the last event; of a stream that ended before, what its events said."""
    text: list[str] = []
    items: list[Any] = []
    for event in events:
        match event.get("type"):
            case "response.completed" | "response.incomplete" | "response.failed":
                response = event.get("response")
                return _output(response.get("output") if isinstance(response, dict) else None)
            case "response.output_text.delta" | "response.refusal.delta":
                text.append(content_text(event.get("delta")))
            case "response.output_item.done":
                items.append(event.get("item"))
    return ModelAnswer("".join(text), _output(items).calls)


def _output(items: Any) -> ModelAnswer:
    texts: list[str] = []
    calls: list[ModelToolCall] = []
    for item in items if isinstance(items, list) else ():
        match item:
            case {"type": "message", "content": content}:
                texts.append(content_text(content))
            case {"type": "function_call" | "custom_tool_call", "name": str(name)}:
                arguments = item.get("arguments", item.get("input"))
                calls.append(ModelToolCall(content_text(item.get("call_id")), name, content_text(arguments)))
    return ModelAnswer("\n".join(filter(None, texts)), tuple(calls))
