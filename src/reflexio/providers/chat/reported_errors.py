"""Errors in the many forms in which servers report them, as an HTTP status and one sentence in OpenAI's form.

A status is corrected where the words or a code of the provider say more: a wrong key with status 400, an empty account
with status 200.
"""

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from reflexio.providers.chat.message_parts import Json

REFUSED, MISLED, BROKEN = 401, 404, 502
SHOWN_CHARACTERS = 80
STATUSES = {"invalid_request": 400, "auth": 401, "permission": 403, "not_found": 404, "rate": 429, "overloaded": 503}
"""The HTTP status of an error that states a type and no status, by a part of the type."""
CODES = {"1002": 429, "1004": 401, "2049": 401, "1008": 402, "1026": 400, "1027": 400, "1039": 400}
"""The HTTP status of MiniMax's codes, which it sends with status 200."""
WORDS = ("message", "error", "errors", "detail", "msg", "error_msg", "error_message", "status_msg", "base_resp", "raw")
"""Where the words of an error may stand, in this order."""
DEEPEST_WORDS = 5
ABOUT_KEY = re.compile(
    r"(?:invalid|incorrect|wrong|missing|expired|no) (?:api[ _-]?key|access token|credentials)"
    r"|(?:api[ _-]?key|access token) (?:is |was )?(?:not valid|invalid|incorrect|missing|expired|required|not found)"
    r"|invalid_?api_?key|\bunauthori[sz]ed\b|login fail",
    re.IGNORECASE,
)
ABOUT_MODEL = re.compile(r"model|deployment|tool|endpoint|redirect", re.IGNORECASE)
TITLE = re.compile(r"<title[^<>]{0,100}>([^<]{1,200})", re.IGNORECASE)
WAIT_IN_WORDS = re.compile(
    r"\bretryDelay\W{1,5}([\d.]{1,9})(s)|\b(?:try again|retry|wait) (?:in|after|for) (?:about )?([\d.]{1,9}) ?(ms|s|m)",
    re.IGNORECASE,
)
DECIMAL = re.compile(r"\d{1,7}(?:\.\d{0,6})?")
LONGEST_READ = 2_000
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0}
WRONG_PATH = "Is the base URL right? It usually ends in /v1."

Response = tuple[int, bytes]


def error_response(status: int, words: str, **details: Any) -> Response:
    return status, json.dumps({"error": {**details, "message": words}}).encode()


def reported(status: int, answer: Any, text: str) -> Response:
    """What a body without a message reports. A success without one counts as an error of the server."""
    is_success = status < 400
    words = " ".join(next(_words(answer), "").split())
    details = _details(answer)
    code = str(details["code"] or "")
    if is_success:
        status = _status(code, f"{details.get('type', '')} {code}".lower())
        words = words or "The server answered without a message (no usable `choices`)."
    if ABOUT_KEY.search(words) and status in (400, 422, 500, BROKEN):
        status = REFUSED
    words = words or _of_page(text)
    if status == MISLED and not ABOUT_MODEL.search(words):
        words = f"{words.removesuffix('.')}. {WRONG_PATH}".removeprefix(". ")
    return error_response(status, words, **details)


def seconds_to_wait(header: str, text: str) -> int:
    """Whole seconds that a server asks to wait, where its `Retry-After` does not say it as the standard wants it."""
    if header.isdecimal() or "," in header:  # seconds, or a date
        return 0
    said = WAIT_IN_WORDS.search(text[:LONGEST_READ])
    number, unit = next(((number, unit) for number, unit in _pairs(said) if number), ("", "s"))
    asked = [(header, 1.0), (number, UNITS[unit.lower()])]
    waits = [float(amount) * factor for amount, factor in asked if DECIMAL.fullmatch(amount)]
    return math.ceil(waits[0]) if waits else 0


def _pairs(said: re.Match[str] | None) -> Iterator[tuple[str, str]]:
    groups = said.groups(default="") if said else ()
    yield from zip(groups[::2], groups[1::2], strict=True)


def beginning(text: str) -> str:
    words = " ".join(text.split())
    return repr(words[:SHOWN_CHARACTERS]) if words else "nothing"


def _status(code: str, kind: str) -> int:
    if code.isdecimal() and 400 <= int(code) < 600:
        return int(code)
    return CODES.get(code) or next((status for part, status in STATUSES.items() if part in kind), BROKEN)


def _details(answer: Any) -> Json:
    """What stands beside the words of an error: its code and its type."""
    while isinstance(answer, list) and answer:
        answer = answer[0]
    inner = answer if isinstance(answer, dict) else {}
    inner = next((value for name in ("error", "base_resp") if isinstance(value := inner.get(name), dict)), inner)
    codes = (inner.get(name) for name in ("code", "status", "status_code"))
    kind = inner.get("type")
    return {
        "code": next((code for code in codes if isinstance(code, str | int)), None),
        "type": kind if isinstance(kind, str) else None,
    }


def _words(value: Any, depth: int = 0) -> Iterator[str]:
    """The words of an error, the most likely ones first."""
    match value:
        case _ if depth > DEEPEST_WORDS:
            return
        case str() if value.strip():
            yield value
        case list():
            yield from (f"{_place(entry)}{words}" for entry in value[:3] for words in _words(entry, depth + 1))
        case dict():
            for name in WORDS:
                yield from _words(value.get(name), depth + 1)


def _place(entry: Any) -> str:
    """The field that an error is about, as frameworks of servers name it."""
    match entry:
        case {"loc": [*names]}:
            return ".".join(map(str, names)) + ": "
        case _:
            return ""


def _of_page(text: str) -> str:
    """What a web page or a plain text says."""
    if title := TITLE.search(text):
        return f"The server answered with a web page: {' '.join(title[1].split())!r}."
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines or text.lstrip().startswith(("{", "[", "<")):
        return f"The server answered with {beginning(text)}." if lines else ""
    # The last line of a stack trace says what happened.
    return lines[-1] if lines[0].startswith("Traceback") else " ".join(lines)
