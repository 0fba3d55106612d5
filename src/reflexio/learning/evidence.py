"""Grounded or dropped: a candidate stays only if the words it quotes stand in the turns it names."""

import json
from collections.abc import Iterator
from typing import Any

from reflexio.models.learned import Candidate, Quote, Turn, Window


def grounded(window: Window, candidates: tuple[Candidate, ...]) -> tuple[tuple[Candidate, ...], int]:
    """The candidates whose evidence is there, with only that evidence, and how many were dropped."""
    said = {turn.id: _said(turn) for turn in window.turns}
    new = {turn.id for turn in window.turns if turn.is_new}
    kept = []
    for each in candidates:
        proof = tuple(quote for quote in each.evidence if _stands(quote, said))
        if any(quote.turn_id in new for quote in proof) and each.content.strip():
            kept.append(Candidate(**{**vars(each), "evidence": proof}))
    return tuple(kept), len(candidates) - len(kept)


def _stands(quote: Quote, said: dict[int, str]) -> bool:
    words = _plain(quote.text)
    return bool(words) and words in said.get(quote.turn_id, "")


def _said(turn: Turn) -> str:
    parts = [turn.content, turn.expert_content, turn.action]
    for tool in turn.tools:
        written = json.dumps(tool.data, ensure_ascii=False)
        parts += [f"{tool.name} ({tool.status}) {written}", tool.status, *_texts(tool.data)]
    return "\n".join(map(_plain, parts))


def _texts(value: Any) -> Iterator[str]:
    """The texts inside a tool's data, as they are and not as JSON writes them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def _plain(text: str) -> str:
    """Case, white space and the kind of quotation marks are no difference."""
    straight = text.translate(str.maketrans("“”‘’", "\"\"''"))
    return " ".join(straight.lower().split())
