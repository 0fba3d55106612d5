"""Answers of OpenAI-compatible servers in the one form that the client understands. Pure: bytes in, bytes out.

Many servers leave out ids and usage, send arguments as objects or content in parts, report errors with status 200, or
stream although nobody asked for it. What is no completion at all becomes an HTTP error with a sentence.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

MISLED = 404
BROKEN = 502
SHOWN_CHARACTERS = 80
STATUSES = {"invalid_request": 400, "auth": 401, "permission": 403, "not_found": 404, "rate": 429, "overloaded": 503}
"""The HTTP status of an error that states a type and no status, by a part of the type."""

Json = dict[str, Any]
Response = tuple[int, bytes]


def regular(status: int, body: bytes, location: str = "") -> Response:
    """Status and body as OpenAI would send them."""
    if 300 <= status < 400:
        return _failed(MISLED, f"The server redirects to {location!r}; set the base URL to where the API is.")
    if status != 200:
        return status, body
    text = body.decode("utf-8", "replace").strip()
    answer = _read(text)
    if answer is None:
        return _failed(BROKEN, f"The server answered with something else than JSON: {_begin(text)}.")
    if error := answer.get("error"):
        return _reported(error)
    message = next(_messages(answer), None)
    if message is None:
        return _failed(BROKEN, "The server answered without a message (no usable `choices`).")
    return 200, json.dumps(_completion(answer, *message)).encode()


def _failed(status: int, words: str) -> Response:
    return status, json.dumps({"error": {"message": words}}).encode()


def _begin(text: str) -> str:
    words = " ".join(text.split())
    return repr(words[:SHOWN_CHARACTERS]) if words else "nothing"


def _reported(error: Any) -> Response:
    """An error inside of a success."""
    told = error if isinstance(error, dict) else {"message": str(error)}
    code = str(told.get("code") or told.get("status") or "")
    if code.isdecimal() and 400 <= int(code) < 600:
        return int(code), json.dumps({"error": told}).encode()
    kind = f"{told.get('type', '')} {code}".lower()
    status = next((status for part, status in STATUSES.items() if part in kind), BROKEN)
    return status, json.dumps({"error": told}).encode()


def _read(text: str) -> Json | None:
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and all(line.startswith(("data:", "event:", "id:", "retry:", ":")) for line in lines):
        return _joined(_chunks(lines))
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None


def _chunks(lines: Iterable[str]) -> Iterator[Json]:
    for line in lines:
        try:
            chunk = json.loads(line.removeprefix("data:"))
        except (ValueError, RecursionError):
            continue  # `[DONE]`, and what keeps a connection open
        if isinstance(chunk, dict):
            yield chunk


def _joined(chunks: Iterable[Json]) -> Json:
    """The completion that a stream spells out."""
    whole: Json = {}
    content, reasoning, refusal, finish = "", "", "", None
    calls: dict[int, Json] = {}
    for chunk in chunks:
        if chunk.get("error"):
            return {"error": chunk["error"]}
        whole = {**whole, **{name: value for name, value in chunk.items() if value is not None}}
        for choice, delta in _messages(chunk):
            content += _text(delta.get("content"))
            reasoning += _text(delta.get("reasoning_content") or delta.get("reasoning"))
            refusal += _text(delta.get("refusal"))
            finish = choice.get("finish_reason") or finish
            for place, call in enumerate(_list(delta.get("tool_calls"))):
                _add_to_call(calls, call, place)
    message = {"content": content or None, "reasoning_content": reasoning or None, "refusal": refusal or None}
    if not (content or reasoning or refusal or calls or finish):
        return {**whole, "choices": []}
    return {**whole, "choices": [{"message": {**message, "tool_calls": [*calls.values()]}, "finish_reason": finish}]}


def _add_to_call(calls: dict[int, Json], part: Any, place: int) -> None:
    if not isinstance(part, dict):
        return
    number = part.get("index")
    call = calls.setdefault(number if isinstance(number, int) else place, {"name": "", "arguments": ""})
    function = part.get("function")
    if isinstance(function, dict):
        call["name"] += _text(function.get("name"))
        call["arguments"] += _arguments(function.get("arguments"))


def _messages(answer: Json) -> Iterator[tuple[Json, Json]]:
    """Each choice with its message."""
    for choice in _list(answer.get("choices")):
        if not isinstance(choice, dict):
            continue
        message = choice.get("message") or choice.get("delta")
        if isinstance(message, str) or (message is None and isinstance(choice.get("text"), str)):
            message = {"content": message or choice["text"]}
        if isinstance(message, dict):
            yield choice, message


def _completion(answer: Json, choice: Json, message: Json) -> Json:
    calls = [
        call for number, part in enumerate(_all_calls(message), start=1) if (call := _call(part, number)) is not None
    ]
    regular_message: Json = {"role": "assistant", "content": _text(message.get("content")) or None}
    for name in ("refusal", "reasoning_content", "reasoning"):
        if text := _text(message.get(name)):
            regular_message[name] = text
    if calls:
        regular_message["tool_calls"] = calls
    finish = choice.get("finish_reason")
    return {
        "id": str(answer.get("id") or "completion"),
        "object": "chat.completion",
        "created": created if isinstance(created := answer.get("created"), int) else 0,
        "model": str(answer.get("model") or ""),
        "choices": [
            {"index": 0, "message": regular_message, "finish_reason": finish if isinstance(finish, str) else "stop"}
        ],
        **_usage(answer.get("usage")),
    }


def _all_calls(message: Json) -> list[Any]:
    calls = _list(message.get("tool_calls"))
    return calls or _list(message.get("function_call"))


def _call(part: Any, number: int) -> Json | None:
    if not isinstance(part, dict):
        return None
    function = part.get("function")
    function = function if isinstance(function, dict) else part
    arguments = next((function[name] for name in ("arguments", "parameters", "input") if name in function), None)
    call_id = part.get("id")
    return {
        "id": call_id if isinstance(call_id, str) and call_id else f"call-{number}",
        "type": "function",
        "function": {"name": _text(function.get("name")) or "answer", "arguments": _arguments(arguments)},
    }


def _arguments(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def _text(value: Any) -> str:
    """A text, or the texts of its parts."""
    if isinstance(value, str):
        return value
    parts = (part.get("text") if isinstance(part, dict) else part for part in _list(value))
    return "".join(part for part in parts if isinstance(part, str))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _usage(usage: Any) -> Json:
    """The tokens that a server has counted; nothing when it has not, so that they are estimated."""
    if not isinstance(usage, dict):
        return {}
    sent, received = (_count(usage.get(name)) for name in ("prompt_tokens", "completion_tokens"))
    if not sent:
        return {}
    details = {
        name: {key: _count(number) for key, number in value.items()}
        for name, value in usage.items()
        if isinstance(value, dict)
    }
    counts = {"prompt_tokens": sent, "completion_tokens": received, "total_tokens": sent + received}
    return {"usage": {**details, **counts}}


def _count(value: Any) -> int:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9 else 0
