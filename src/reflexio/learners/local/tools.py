"""A tool call that failed, and the call of the same tool that then worked: what differed is the lesson."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from reflexio.learners.local.finding import Finding, quotes
from reflexio.learners.local.triggers import request_before, trigger_of
from reflexio.models.learned import Candidate, Quote, ToolCall, Turn
from reflexio.models.learning import Kind

LONGEST_VALUE = 120
MOST_DIFFERENCES = 4

_ARGUMENTS = ("input", "args", "arguments", "params", "parameters", "tool_input", "kwargs")
_OUTCOMES = frozenset(
    (
        "output",
        "result",
        "response",
        "error",
        "errors",
        "status",
        "message",
        "stderr",
        "exception",
        "traceback",
        "duration",
        "id",
    )
)
_BAD_STATUS = re.compile(
    r"\b(?:err|error|errored|fail|failed|failure|timeout|exception|invalid|rejected|denied|4\d\d|5\d\d)\b", re.I
)
_BAD_RESULT = re.compile(r"^\s*(?:error|exception|traceback|failed|failure|invalid|fatal)\b", re.I)


def recoveries(turns: Sequence[Turn]) -> Iterator[Finding]:
    """One playbook for each tool that failed and then worked with other arguments."""
    open_failures: dict[str, tuple[Turn, ToolCall]] = {}
    for place, turn in enumerate(turns):
        for call in turn.tools:
            if problem(call):
                open_failures[call.name] = (turn, call)
            elif call.name in open_failures:
                failed_in, failed = open_failures.pop(call.name)
                if turn.is_new and (found := _recovery(turns, place, failed_in, failed, call)):
                    yield found


def problem(call: ToolCall) -> str:
    """What went wrong, in the tool's words where it has some; empty when the call worked."""
    told = next((text for key in ("error", "errors", "exception", "stderr") if (text := _text(call.data.get(key)))), "")
    outcome = next((text for key in ("output", "result", "response") if (text := _text(call.data.get(key)))), "")
    if told:
        return told
    if _BAD_STATUS.search(call.status):
        return outcome or _text(call.data.get("message")) or call.status
    return outcome if _BAD_RESULT.match(outcome) else ""


def _recovery(turns: Sequence[Turn], place: int, failed_in: Turn, failed: ToolCall, worked: ToolCall) -> Finding | None:
    before, after = _arguments(failed), _arguments(worked)
    changed = [key for key in sorted({*before, *after}) if before.get(key) != after.get(key)][:MOST_DIFFERENCES]
    if not changed:
        return None  # the same call again: a passing fault, nothing to learn
    wrong = _short(problem(failed))
    how = "; ".join(_difference(key, before, after) for key in changed)
    request = request_before(turns, place + 1)
    evidence = (
        *quotes(request),
        Quote(failed_in.id, _verbatim(problem(failed))),
        *_values(turns[place], after, changed),
    )
    found = Candidate(
        Kind.USER_PLAYBOOK,
        "",
        f"Call {worked.name} {how}. Otherwise it fails: {wrong}",
        f"The agent calls {worked.name}" + (f" after: {trigger_of(request)}" if request else ""),
        "The call failed, and worked when this was changed.",
        evidence,
        {"signal": "tool", "tool": worked.name},
    )
    return Finding(1.15, found)


def _difference(key: str, before: dict[str, Any], after: dict[str, Any]) -> str:
    match key in before, key in after:
        case True, True:
            return f"with {key}={_value(after[key])}, not {_value(before[key])}"
        case True, False:
            return f"without {key}"
        case _:
            return f"with {key}={_value(after[key])}"


def _arguments(call: ToolCall) -> dict[str, Any]:
    for key in _ARGUMENTS:
        if key in call.data:
            given = _decoded(call.data[key])
            return given if isinstance(given, dict) else {key: given}
    return {key: value for key, value in call.data.items() if key not in _OUTCOMES}


def _decoded(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _values(turn: Turn, after: dict[str, Any], changed: list[str]) -> tuple[Quote, ...]:
    return tuple(
        Quote(turn.id, after[key]) for key in changed if isinstance(after.get(key), str) and after[key].strip()
    )


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else json.dumps(value, ensure_ascii=False) if value else ""


def _verbatim(text: str) -> str:
    """The beginning of the words, cut at a line so that it stands in the tool's data as it is."""
    return text.splitlines()[0][:LONGEST_VALUE]


def _short(text: str) -> str:
    line = text.splitlines()[0]
    return line if len(line) <= LONGEST_VALUE else line[:LONGEST_VALUE].rstrip() + "…"


def _value(value: Any) -> str:
    return _short(json.dumps(value, ensure_ascii=False))
