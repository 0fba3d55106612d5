"""A tool call that failed, and the call of the same tool that then worked: the difference becomes a playbook."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from reflexio.learners.local.argument_forms import form_difference
from reflexio.learners.local.candidates import RuleMatch, playbook_match
from reflexio.learners.local.sentences import CUES, cue_pairs, quotes
from reflexio.learners.local.triggers import request_before, trigger_of
from reflexio.models.extraction import Quote, RecordedToolCall, Turn

LONGEST_VALUE = 120
MOST_DIFFERENCES = 4
TYPES = {str: "text", bool: "a boolean", int: "a number", float: "a number", list: "a list", dict: "an object"}

_LONG_NUMBER = re.compile(r"\d[\d.:/-]*\d{2}[\d.:/-]*|\b\d+(?=[-/:]\d)|\d{3,}")
_ARGUMENTS = ("input", "args", "arguments", "params", "parameters", "tool_input", "kwargs")


def recoveries(turns: Sequence[Turn]) -> Iterator[RuleMatch]:
    """One playbook for each tool that failed and then worked with other arguments."""
    failures: dict[str, tuple[Turn, RecordedToolCall]] = {}
    for place, turn in enumerate(turns):
        for call in turn.tools:
            if _problem(call):
                failures[call.name] = (turn, call)
            elif call.name in failures:
                failure = failures.pop(call.name)
                if turn.is_new and (match := _recovery(turns, place, *failure, call)):
                    yield match


def _problem(call: RecordedToolCall) -> str:
    """What went wrong, in the tool's words where it has some; empty when the call worked."""
    if error := _first_text(call, "error", "errors", "exception", "stderr"):
        return error
    output = _first_text(call, "output", "result", "response")
    if CUES["bad_status"].search(call.status):
        return output or _first_text(call, "message") or call.status
    return output if CUES["bad_result"].match(output) else ""


def _first_text(call: RecordedToolCall, *keys: str) -> str:
    for key in keys:
        value = call.data.get(key)
        text = value.strip() if isinstance(value, str) else json.dumps(value, ensure_ascii=False) if value else ""
        if text:
            return text
    return ""


def _recovery(
    turns: Sequence[Turn], place: int, failed_in: Turn, failed: RecordedToolCall, worked: RecordedToolCall
) -> RuleMatch | None:
    before, after = _arguments(failed), _arguments(worked)
    if _has_other_type(failed.data.get("id"), worked.data.get("id")):
        # Usually the id of the call, which differs from call to call; with another type it is an argument.
        before, after = {**before, "id": failed.data["id"]}, {**after, "id": worked.data["id"]}
    changed = [key for key in sorted({*before, *after}) if before.get(key) != after.get(key)][:MOST_DIFFERENCES]
    if not changed:
        return None  # the same call again: a transient failure, nothing to learn
    problem = _problem(failed).splitlines()[0]
    differences = "; ".join(_difference(key, before, after) for key in changed)
    request = request_before(turns, place + 1)
    values = [after[key] for key in changed if isinstance(after.get(key), str) and after[key].strip()]
    return playbook_match(
        1.15,
        f"Call {worked.name} {differences}. Otherwise it fails: {_shortened(_shape(problem))}",
        _trigger(worked.name, trigger_of(request) if request else "", changed),
        "The call failed, and worked when this was changed.",
        (
            *quotes(request),
            # Cut at a line and between words, so that the quote stands in the tool's data as it is.
            Quote(failed_in.id, _cut_between_words(problem)),
            *(Quote(turns[place].id, value) for value in values),
        ),
        signal="tool",
        tool=worked.name,
    )


def _trigger(tool: str, request: str, changed: Sequence[str]) -> str:
    """What the user wanted; where that belongs to the case alone, what they name: "the 12th of May instead"."""
    if request:
        return f"The agent calls {tool} after: {request}"
    named = next((what for key, what in cue_pairs("arguments") for name in changed if key.search(name)), "")
    return f"The user names {named}, and the agent calls {tool}" if named else f"The agent calls {tool}"


def _cut_between_words(text: str) -> str:
    head = text[:LONGEST_VALUE]
    return head if len(text) <= LONGEST_VALUE else head.rpartition(" ")[0] or head


def _difference(key: str, before: dict[str, Any], after: dict[str, Any]) -> str:
    if key not in after:
        return f"without {key}"
    if _has_other_type(before.get(key), after[key]):
        return f"with {key} as {TYPES[type(after[key])]}, not as {TYPES[type(before[key])]}"
    value, earlier = after[key], before.get(key)
    if isinstance(value, str) and isinstance(earlier, str) and (form := form_difference(key, earlier, value)):
        return f"with {form}"
    old, new = (_value(key, arguments.get(key)) for arguments in (before, after))
    if key in before and old == new:
        return f"with the {key} of the case at hand"
    if key in before:
        return f"with {key}={new}, not {old}"
    return f"with {key}" if CUES["key_of_case"].search(key) else f"with {key}={new}"


def _value(key: str, value: Any) -> str:
    """A setting as it is; of what belongs to one case, such as a date or an identifier, only its form."""
    text = _shortened(json.dumps(value, ensure_ascii=False))
    is_of_case = bool(CUES["key_of_case"].search(key)) or (isinstance(value, str) and sum(map(str.isdigit, value)) > 2)
    return _shape(text) if is_of_case else text


def _shape(text: str) -> str:
    """With "#" for the digits of longer numbers, and without addresses."""
    return _LONG_NUMBER.sub(lambda number: re.sub(r"\d", "#", number[0]), CUES["address"].sub(" …", text))


def _has_other_type(old: Any, new: Any) -> bool:
    """Whether the same value was written as another type: "77" and 77."""
    known = type(old) in TYPES and type(new) in TYPES
    return known and TYPES[type(old)] != TYPES[type(new)] and str(old).lower() == str(new).lower()


def _arguments(call: RecordedToolCall) -> dict[str, Any]:
    for key in _ARGUMENTS:
        if key in call.data:
            arguments = call.data[key]
            if isinstance(arguments, str):
                try:
                    arguments = json.loads(arguments)
                except ValueError:
                    return {key: arguments}
            return arguments if isinstance(arguments, dict) else {key: arguments}
    return {key: value for key, value in call.data.items() if key not in CUES.lists["outcomes"]}


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE].rstrip() + "…"
