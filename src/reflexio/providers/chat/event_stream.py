"""Joins the chunks of a streamed answer into one completion: server-sent events, or one JSON object a line."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from reflexio.providers.chat.message_parts import Json, arguments_of, as_list, messages, text_of

FIELDS = ("data:", "event:", "id:", "retry:", ":")


def joined(text: str) -> Json | None:
    """The completion that a stream spells out; None for a text that is no stream."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if lines and all(line.startswith(FIELDS) for line in lines):
        return _completion(_chunks(line.removeprefix("data:") for line in lines))
    chunks = list(_chunks(lines))
    return _completion(chunks) if chunks and len(chunks) == len(lines) else None


def _chunks(lines: Iterable[str]) -> Iterator[Json]:
    for line in lines:
        try:
            chunk = json.loads(line)
        except (ValueError, RecursionError):
            continue  # `[DONE]`, and what keeps a connection open
        if isinstance(chunk, dict):
            yield chunk


def _completion(chunks: Iterable[Json]) -> Json:
    whole: Json = {}
    content, reasoning, refusal, finish = "", "", "", None
    calls = list[Json]()
    for chunk in chunks:
        if chunk.get("error"):
            return {"error": chunk["error"]}
        whole = {**whole, **{name: value for name, value in chunk.items() if value is not None}}
        for choice, delta in messages(chunk):
            if choice.get("error"):
                return {"error": choice["error"]}
            content += text_of(delta.get("content"))
            reasoning += text_of(delta.get("reasoning_content") or delta.get("reasoning"))
            refusal += text_of(delta.get("refusal"))
            finish = choice.get("finish_reason") or finish
            for place, part in enumerate(as_list(delta.get("tool_calls"))):
                _add_call(calls, part, place)
    message = {"content": content or None, "reasoning_content": reasoning or None, "refusal": refusal or None}
    if not (content or reasoning or refusal or calls or finish):
        return {**whole, "choices": []}
    return {**whole, "choices": [{"message": {**message, "tool_calls": calls}, "finish_reason": finish}]}


def _add_call(calls: list[Json], part: Any, place: int) -> None:
    """Adds a part to its call. Some servers give every call the same number, or none: then its id tells it apart."""
    if not isinstance(part, dict):
        return
    number = part["index"] if isinstance(part.get("index"), int) else place
    call = next((call for call in reversed(calls) if call["number"] == number), None)
    if call is None or (part.get("id") and call["id"] and part["id"] != call["id"]):
        call = {"number": number, "id": part.get("id"), "name": "", "arguments": ""}
        calls.append(call)
    function = part.get("function")
    if isinstance(function, dict):
        call["name"] += text_of(function.get("name"))
        call["arguments"] += arguments_of(function.get("arguments"))
