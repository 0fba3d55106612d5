"""Grounded or dropped: a candidate is kept only if the words it quotes occur in the turns it names."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from reflexio.models.extraction import ExtractedLearning, Turn, Window


def grounded(window: Window, candidates: tuple[ExtractedLearning, ...]) -> tuple[tuple[ExtractedLearning, ...], int]:
    """The candidates with evidence in a new turn, without quotes that do not occur, and how many were dropped."""
    texts = {turn.id: _turn_text(turn) for turn in window.turns}
    new = {turn.id for turn in window.turns if turn.is_new}
    kept = []
    for candidate in candidates:
        quotes = [(quote, _normalise(quote.text)) for quote in candidate.evidence]
        evidence = tuple(quote for quote, words in quotes if words and words in texts.get(quote.turn_id, ""))
        if any(quote.turn_id in new for quote in evidence) and candidate.content.strip():
            kept.append(replace(candidate, evidence=evidence))
    return tuple(kept), len(candidates) - len(kept)


def _turn_text(turn: Turn) -> str:
    parts = [turn.content, turn.expert_content, turn.action]
    for tool in turn.tools:
        data = json.dumps(tool.data, ensure_ascii=False)
        parts += [f"{tool.name} ({tool.status}) {data}", tool.status, *_strings_in(tool.data)]
    return "\n".join(map(_normalise, parts))


def _strings_in(value: Any) -> Iterator[str]:
    """The strings inside a tool's data, without JSON's escapes."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings_in(item)


def _normalise(text: str) -> str:
    """Ignores case, white space and the kind of quotation marks."""
    straight = text.translate(str.maketrans("“”‘’", "\"\"''"))
    return " ".join(straight.lower().split())
