"""Answers of OpenAI-compatible servers in the one form that the client understands. Pure: bytes in, bytes out.

Many servers leave out ids and usage, send arguments as objects or content in parts, answer in the form of another
protocol, report errors with status 200, or stream although nobody asked for it. What is no completion at all becomes an
HTTP error with a sentence.
"""

import json
from typing import Any

from reflexio.providers.chat import event_stream
from reflexio.providers.chat.message_parts import Json, arguments_of, as_list, messages, text_of
from reflexio.providers.chat.reported_errors import BROKEN, MISLED, Response, beginning, error_response, reported

FINISHES = {
    **dict.fromkeys(("max_tokens", "max_output_tokens", "model_length", "max_length", "token_limit"), "length"),
    **dict.fromkeys(("safety", "sensitive", "recitation", "blocklist", "prohibited_content"), "content_filter"),
}
"""Reasons by which other servers say that an answer was cut off, or held back."""
BREAK_OFFS = ("error", "network_error", "abort")
COUNTS = {
    "prompt_tokens": ("prompt_tokens", "input_tokens", "prompt_eval_count"),
    "completion_tokens": ("completion_tokens", "output_tokens", "eval_count"),
}
CALL_PARTS = ("tool_use", "tool_call", "function_call")


def regular(status: int, body: bytes, location: str = "") -> Response:
    """Status and body as OpenAI would send them."""
    if 300 <= status < 400:
        return error_response(MISLED, f"The server redirects to {location!r}; set the base URL to where the API is.")
    text = body.decode("utf-8-sig", "replace").strip()
    answer = _read(text)
    if status >= 400:
        return reported(status, answer, text)
    if isinstance(answer, list) and answer and isinstance(answer[0], dict):
        answer = answer[0]
    if not isinstance(answer, dict):
        return error_response(BROKEN, f"The server answered with something else than JSON: {beginning(text)}.")
    if answer.get("error"):
        return reported(status, answer, text)
    choice, message = next(messages(answer), ({}, None))
    if message is None or choice.get("error"):
        return reported(status, choice if choice.get("error") else answer, text)
    completion = _completion(answer, choice, message)
    finish, made = choice.get("finish_reason"), completion["choices"][0]["message"]
    if finish in BREAK_OFFS and not (made["content"] or made.get("tool_calls")):
        return error_response(BROKEN, f"The server broke off its answer (finish_reason {finish!r}).")
    return 200, json.dumps(completion).encode()


def _read(text: str) -> Any:
    """The JSON, or the completion that a stream spells out; None for anything else."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return event_stream.joined(text)


def _completion(answer: Json, choice: Json, message: Json) -> Json:
    calls = [
        call for number, part in enumerate(_all_calls(message), start=1) if (call := _call(part, number)) is not None
    ]
    regular_message: Json = {"role": "assistant", "content": text_of(message.get("content")) or None}
    for name in ("refusal", "reasoning_content", "reasoning"):
        if text := text_of(message.get(name)):
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
            {
                "index": 0,
                "message": regular_message,
                "finish_reason": FINISHES.get(finish.lower(), finish) if isinstance(finish, str) else "stop",
            }
        ],
        **_usage(answer, has_output=len(regular_message) > 2 or regular_message["content"] is not None),
    }


def _all_calls(message: Json) -> list[Any]:
    content = as_list(message.get("content"))
    parts = [part for part in content if isinstance(part, dict) and part.get("type") in CALL_PARTS]
    return as_list(message.get("tool_calls")) or as_list(message.get("function_call")) or parts


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
        "function": {"name": text_of(function.get("name")) or "answer", "arguments": arguments_of(arguments)},
    }


def _usage(answer: Json, *, has_output: bool) -> Json:
    """The tokens that a server has counted; nothing when it has not, so that they are estimated."""
    usage = answer["usage"] if isinstance(answer.get("usage"), dict) else answer
    counts = {
        name: max((_count(usage.get(spelling)) for spelling in spellings), default=0)
        for name, spellings in COUNTS.items()
    }
    if not counts["prompt_tokens"] or (has_output and not counts["completion_tokens"]):
        return {}
    details = {
        name: {key: _count(number) for key, number in value.items()}
        for name, value in usage.items()
        if isinstance(value, dict) and name.endswith("_details")
    }
    return {"usage": {**details, **counts, "total_tokens": sum(counts.values())}}


def _count(value: Any) -> int:
    if isinstance(value, str) and value.isdecimal() and len(value) < 10:
        return int(value)
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9 else 0
