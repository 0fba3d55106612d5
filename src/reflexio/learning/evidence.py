"""Grounded or dropped: what a candidate quotes must stand in the turns, say enough, and come from those on whose word
such a learning may rest.

Facts and requests to forget rest on words of the user; playbooks also on an expert's answer or on a tool that failed.
What an agent, a system prompt or a tool's result says teaches nothing by itself: it may repeat anybody.
"""

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from reflexio.learning.quotation import comparable, find_pieces, is_clause, is_sound, pieces_of
from reflexio.models.extraction import ExtractedLearning, Quote, RecordedToolCall, Turn, Window
from reflexio.models.learning import Kind

Speaker = Literal["user", "expert", "failure", "tool", "agent", "system"]
"""Whose words a text holds. A failure is what a tool call says that did not work."""

LONGEST_ANSWER = 20
"""Characters of a turn such as "Yes, please.", which says nothing without the question before it."""

_FAILURE = re.compile(
    r"(?i)\b(?:err(?:or|ors|ored)?|fail(?:s|ed|ure)?|exceptions?|traceback|timed? ?-?out|invalid|reject(?:s|ed)|denied|"
    r"refused|forbidden|unauthori[sz]ed|not (?:found|allowed|supported)|unknown|missing|unable|cannot|fatal|[45]\d\d)\b"
)
_FAILED_KEYS = ("error", "errors", "exception", "stderr")
_OUTPUTS = ("output", "result", "response")


@dataclass(frozen=True)
class Passage:
    """One text of a turn, and whose words it holds."""

    turn: Turn
    speaker: Speaker
    text: str


@dataclass(frozen=True)
class _Match:
    quote: Quote
    passage: Passage
    is_sound: bool


def grounded(
    window: Window, candidates: Sequence[ExtractedLearning], assessing: Collection[str] = ()
) -> tuple[tuple[ExtractedLearning, ...], int]:
    """The candidates that rest on words of new turns, with their sound quotes only, and how many were dropped.

    A quote that stands in another turn than it names is moved there. `assessing` are the types that assess the
    conversation: they may rest on anybody's words.
    """
    passages = [passage for turn in window.turns for passage in _passages(turn)]
    kept = []
    for candidate in candidates:
        standing = _standing(candidate, assessing)
        evidence = _evidence(candidate, passages, standing)
        if candidate.content.strip() and _bears(evidence, standing):
            quotes = dict.fromkeys(Quote(match.passage.turn.id, match.quote.text) for match in evidence)
            said_at = max(match.passage.turn.at for match in evidence if match.passage.turn.is_new)
            kept.append(replace(candidate, evidence=tuple(quotes), said_at=said_at))
    return tuple(kept), len(candidates) - len(kept)


def _standing(candidate: ExtractedLearning, assessing: Collection[str]) -> frozenset[Speaker]:
    if candidate.kind is Kind.PROFILE or candidate.forget:
        return frozenset({"user"})
    if candidate.name in assessing:
        return frozenset({"user", "expert", "failure", "tool", "agent"})
    return frozenset({"user", "expert", "failure"})


def _bears(evidence: Sequence[_Match], standing: frozenset[Speaker]) -> bool:
    """Whether somebody with standing speaks in a new turn; or a call that failed before works in a new one."""
    speakers = {(match.passage.speaker, match.passage.turn.is_new) for match in evidence}
    has_recovered = "failure" in standing and ("failure", False) in speakers and ("tool", True) in speakers
    return has_recovered or any((speaker, True) in speakers for speaker in standing)


def _evidence(candidate: ExtractedLearning, passages: Sequence[Passage], standing: frozenset[Speaker]) -> list[_Match]:
    matches = [_best_match(quote, candidate.text, passages, standing) for quote in candidate.evidence]
    sound = [match for match in matches if match and match.is_sound]
    return [match for match in matches if match and (match.is_sound or _is_answer(match.passage, sound, passages))]


def _best_match(
    quote: Quote, learning: str, passages: Sequence[Passage], standing: frozenset[Speaker]
) -> _Match | None:
    """Where a quote stands. Of several places, one whose words have standing, then the one that it names."""
    pieces = pieces_of(quote.text)
    matches = []
    for passage in passages:
        if spans := find_pieces(pieces, passage.text):
            is_whole = len(spans) == 1 and is_clause(passage.text, *spans[0])
            matches.append(_Match(quote, passage, is_sound(pieces, is_whole=is_whole, learning=learning)))

    def preference(match: _Match) -> tuple[bool, bool, bool, bool]:
        turn = match.passage.turn
        has_standing = match.passage.speaker in standing and turn.is_new
        return match.is_sound, has_standing, turn.id == quote.turn_id, turn.is_new

    return max(matches, key=preference, default=None)


def _is_answer(passage: Passage, sound: Sequence[_Match], passages: Sequence[Passage]) -> bool:
    """Whether a turn of the user as short as "Yes." answers the agent's turn before it, which is quoted as well."""
    if passage.speaker != "user" or len(passage.text) > LONGEST_ANSWER:
        return False
    turns = list(dict.fromkeys(other.turn.id for other in passages))
    before = turns[max(0, turns.index(passage.turn.id) - 1)]
    return any(match.passage.turn.id == before and match.passage.speaker == "agent" for match in sound)


def _passages(turn: Turn) -> Iterator[Passage]:
    texts: list[tuple[Speaker, str]] = [
        (_speaker(turn), turn.content),
        ("user", turn.action),
        ("expert", turn.expert_content),
    ]
    for call in turn.tools:
        speaker: Speaker = "failure" if _has_failed(call) else "tool"
        line = f"{call.name} ({call.status}) {json.dumps(call.data, ensure_ascii=False)}"
        texts += [(speaker, text) for text in (line, call.status, *_strings_in(call.data))]
    for by, text in texts:
        if compared := comparable(text):
            yield Passage(turn, by, compared)


def _speaker(turn: Turn) -> Speaker:
    match turn.role:
        case "user" | "agent":
            return turn.role
        case "tool":
            return "failure" if _FAILURE.search(turn.content[:1_000]) else "tool"
        case _:
            return "system"


def _has_failed(call: RecordedToolCall) -> bool:
    outputs = (call.data.get(key) for key in _OUTPUTS)
    begins_so = any(isinstance(output, str) and _FAILURE.match(output.lstrip()) for output in outputs)
    return bool(_FAILURE.search(call.status)) or begins_so or any(call.data.get(key) for key in _FAILED_KEYS)


def _strings_in(value: Any) -> Iterator[str]:
    """The strings inside a tool's data, without JSON's escapes."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings_in(item)
