"""Answers of servers in the wild that are no answer: what is asked for once more, and what ends in an error."""

import json
from typing import Any

from reflexio.errors import (
    ContextTooLong,
    Declined,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
    UnreadableAnswer,
)
from tests.contract.odd_answers import FACT, TEXT, call, calls, completion, text
from tests.scripted_model import Answer, Failure, Filtered, Raw, Refusal, Spoken


def body(content: Any, status: int = 200) -> Raw:
    return Raw(json.dumps(content).encode(), status)


def page(title: str, status: int) -> Raw:
    return Raw(
        f"<!DOCTYPE html><html><head><title>{title}</title></head><h1>Hm</h1></html>".encode(), status, "text/html"
    )


CUT = len(TEXT) - 20  # in the middle of the rule
REPAIRED: dict[str, Answer] = {
    "empty arguments": calls(call("")),
    "an empty object": calls(call("{}")),
    "null for lists": calls(call('{"facts": null, "rules": null}')),
    "words": Spoken("There is nothing to note here."),
    "content null": text(None),
    "content empty": text(""),
    "cut off in a call": calls(call(TEXT[:CUT]), finish="length"),
    "cut off in the text": text(TEXT[:CUT], finish="length"),
    "cut off while it was thinking": text("<think>Let me {see", finish="length"),
    "a rejected tool_choice": Failure(400, "tool_choice 'required' is not supported while thinking"),
    "tools that need a flag": Failure(500, "tools param requires a chat template (--jinja)"),
    "tools that are unknown": Failure(400, "this model does not support tools"),
    "no endpoint with tools": Failure(404, "No endpoints found that support tool use"),
    "a rejected schema": Failure(400, "Invalid schema for function 'answer'", "invalid_function_parameters"),
    "a rejection without a reason": Failure(400, "Bad Request"),
    "only streams": Failure(400, "This model only supports stream mode, set stream to true."),
    "a limit of another name": Failure(
        400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    ),
    "a limit that is too high": Failure(400, "max_tokens is too large: 16000. At most 4096 are possible."),
    "a context for both": Failure(400, "maximum context length is 8192 tokens, however you requested 16200"),
    "a model without a role of the system": Failure(400, "System role not supported"),
    "a template without a role of the system": Failure(500, "Jinja Exception: Conversation roles must alternate"),
    "a limit that is too high for text and answer": Failure(
        422,
        "`inputs` tokens + `max_new_tokens` must be <= 8192. Given: 2100 `inputs` tokens and 16000 `max_new_tokens`",
    ),
    "a parameter that a framework refuses": body(
        {"detail": [{"loc": ["body", "tool_choice"], "msg": "extra fields not permitted"}]}, 422
    ),
    "errors in a list": body({"errors": ["tools are unknown"]}, 400),
    "an object that lacks a list": text(json.dumps({"facts": [FACT]})),
    "cut off by another name": text(TEXT[:CUT], finish="max_tokens"),
    "only brackets missing where the limit was": text(TEXT[:-1], finish="length"),
}

FAILING: dict[str, tuple[Answer, type[ProviderError], str]] = {
    "no choices": (completion({}, choices=[]), ProviderUnavailable, "without a message"),
    "choices null": (completion({}, choices=None), ProviderUnavailable, "without a message"),
    "an error with status 200": (
        Raw(b'{"error": {"message": "upstream is away", "code": 502}}'),
        ProviderUnavailable,
        "upstream is away",
    ),
    "a rate limit with status 200": (
        Raw(b'{"error": {"message": "slow down", "type": "rate_limit_error"}}'),
        ProviderUnavailable,
        "slow down",
    ),
    "a refused key with status 200": (
        Raw(b'{"error": {"message": "who are you", "code": "401"}}'),
        ProviderRefused,
        "who are you",
    ),
    "a web page": (Raw(b"<html>Welcome</html>", content_type="text/html"), ProviderUnavailable, "else than JSON"),
    "nothing": (Raw(b""), ProviderUnavailable, "nothing"),
    "another kind of JSON": (Raw(b"[1, 2]"), ProviderUnavailable, "else than JSON"),
    "a redirect": (Raw(b"", 307), ProviderRefused, "redirects"),
    "a refusal": (Refusal("I will not."), Declined, "I will not"),
    "a content filter": (Filtered(), Declined, "declined"),
    "a filtered prompt": (Failure(400, "triggering the content management policy"), Declined, "policy"),
    "a context that is too short": (
        Failure(400, "the request exceeds the available context size, try increasing it"),
        ContextTooLong,
        "context size",
    ),
    "a body that is too long": (Failure(413, "Payload too large"), ContextTooLong, "too large"),
    "a wrong key": (Failure(401, "no such key"), ProviderRefused, "no such key"),
    "an unknown model": (Failure(404, "model 'x' not found"), ProviderRefused, "not found"),
    "an empty account": (Failure(402, "Insufficient Balance"), ProviderRefused, "Balance"),
    "an empty account as a limit": (Failure(429, "You exceeded your current quota"), ProviderRefused, "quota"),
    "a model that loads": (Failure(503, "Loading model"), ProviderUnavailable, "Loading"),
    "a server error": (Failure(500, "oops"), ProviderUnavailable, "oops"),
    "a bad gateway": (Raw(b"<html>Bad gateway</html>", 502, "text/html"), ProviderUnavailable, "502"),
    "a web page without an API": (
        page("404 Not Found", 404),
        ProviderRefused,
        "a web page: '404 Not Found'. Is the base URL right?",
    ),
    "an unknown path": (body({"detail": "Not Found"}, 404), ProviderRefused, "Is the base URL right?"),
    "a page of a proxy": (page("503 Service Unavailable", 503), ProviderUnavailable, "'503 Service Unavailable'"),
    "a wrong key as a bad request": (
        body([{"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT"}}], 400),
        ProviderRefused,
        "API key not valid",
    ),
    "a limit in a list": (
        body([{"error": {"code": 429, "message": "Quota of a minute", "status": "RESOURCE_EXHAUSTED"}}], 429),
        ProviderUnavailable,
        "Quota of a minute",
    ),
    "a refused key as MiniMax says it": (
        body({"choices": None, "base_resp": {"status_code": 1004, "status_msg": "login fail"}}),
        ProviderRefused,
        "login fail",
    ),
    "an empty account as MiniMax says it": (
        body({"choices": None, "base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}),
        ProviderRefused,
        "insufficient balance",
    ),
    "an error in the choice": (
        body({"choices": [{"finish_reason": "error", "error": {"code": 502, "message": "upstream broke"}}]}),
        ProviderUnavailable,
        "upstream broke",
    ),
    "an answer that broke off": (text("", finish="error"), ProviderUnavailable, "broke off"),
    "an error without its name": (
        body({"object": "error", "message": "no worker", "code": 500}),
        ProviderUnavailable,
        "no worker",
    ),
    "an error in a list with status 200": (body([{"error": "too busy"}]), ProviderUnavailable, "too busy"),
    "an error in words with status 200": (
        body({"success": False, "msg": "no such region"}),
        ProviderUnavailable,
        "region",
    ),
    "JSON without an object": (body("loading"), ProviderUnavailable, "else than JSON"),
    "a stack trace": (
        Raw(b"Traceback (most recent call last):\n  File 'a.py', line 1\nKeyError: 'x'", 500, "text/plain"),
        ProviderUnavailable,
        "HTTP 500 KeyError",
    ),
    "a context that overflows": (
        Failure(
            400,
            "Trying to keep the first 5000 tokens when context the overflows. It has a context length of only 4096.",
        ),
        ContextTooLong,
        "overflows",
    ),
    "lists in lists for entries": (
        text('{"facts": ' + "[" * 900 + "]" * 900 + ', "rules": []}'),
        UnreadableAnswer,
        "facts",
    ),
}
