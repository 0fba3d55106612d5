"""Removes what an organisation does not want stored: the text with marks such as [email], and how many of each kind.

Ids are left as they are (users, sessions, requests, sources, versions), and so are images.
"""

import asyncio
import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from reflexio.interactions import sensitive
from reflexio.interactions.phone_numbers import phones
from reflexio.interactions.sensitive import Span
from reflexio.models.interaction import InteractionData
from reflexio.models.learning import Learning
from reflexio.models.redaction import RedactionKind
from reflexio.ports.storage import Store, Tx

FINDERS: dict[RedactionKind, Callable[[str], Iterator[Span]]] = {
    # In this order: a key may hold what looks like a number, and a card number is no phone number.
    RedactionKind.KEY: sensitive.keys,
    RedactionKind.EMAIL: sensitive.emails,
    RedactionKind.IBAN: sensitive.ibans,
    RedactionKind.CARD: sensitive.cards,
    RedactionKind.PHONE: phones,
}
SHORT = 20_000
"""Characters that are redacted at once; more are redacted on a thread, so that others do not wait."""
LEARNING_TEXTS = ("content", "trigger", "rationale", "name")
LEARNING_DETAILS = ("custom_features", "source_span", "notes", "metadata", "playbook_metadata", "blocking_issue")
TURN_TEXTS = ("role", "content", "shadow_content", "expert_content", "user_action_description")


def stored_kinds(tx: Tx) -> frozenset[RedactionKind]:
    """The kinds in force. Every publish asks, so only this field of the document is read."""
    document = tx.configs.get()
    return frozenset(map(RedactionKind, json.loads(document).get("redaction", ()))) if document else frozenset()


class Redactor:
    """Redacts the texts of one call and counts what it removed."""

    def __init__(self, kinds: Collection[RedactionKind]) -> None:
        self._finders = [(kind, find) for kind, find in FINDERS.items() if kind in kinds]
        self.counts: Counter[str] = Counter()

    def text(self, text: str) -> str:
        for kind, find in self._finders:
            spans = _merge(find(text))
            if spans:
                self.counts[kind.value] += len(spans)
                text = _replace(text, spans, kind.mark)
        return text

    def json(self, value: Any) -> Any:
        """Lists and objects with their texts redacted, keys of objects too. A number is redacted when it is a card."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return _object((self.text(key), self.json(entry)) for key, entry in value.items())
        if isinstance(value, list | tuple):
            return [self.json(entry) for entry in value]
        if isinstance(value, int) and not isinstance(value, bool) and value > 10**12:
            redacted = self.text(str(value))
            return value if redacted == str(value) else redacted
        return value

    def turn(self, turn: InteractionData) -> InteractionData:
        changes: dict[str, Any] = {name: self.text(getattr(turn, name)) for name in TURN_TEXTS}
        if not turn.interacted_image_url.startswith("data:"):
            changes["interacted_image_url"] = self.text(turn.interacted_image_url)
        changes["tools_used"] = [
            tool.model_copy(
                update={
                    "tool_name": self.text(tool.tool_name),
                    "tool_data": self.json(tool.tool_data),
                    "status": self.text(tool.status),
                }
            )
            for tool in turn.tools_used
        ]
        changes["citations"] = [
            citation.model_copy(update={"tag": self.text(citation.tag), "title": self.text(citation.title)})
            for citation in turn.citations
        ]
        return turn.model_copy(update=changes)

    def learning(self, learning: Learning) -> Learning:
        details = {
            name: self.json(value) if name in LEARNING_DETAILS else value for name, value in learning.details.items()
        }
        texts: dict[str, Any] = {name: self.text(getattr(learning, name)) for name in LEARNING_TEXTS}
        tags = tuple(self.text(tag) for tag in learning.tags)
        return dataclasses.replace(learning, **texts, tags=tags, details=details)

    @property
    def found(self) -> dict[str, int] | None:
        """How many of each kind were removed; None when no kind is."""
        return dict(self.counts) if self._finders else None


async def redact_learnings(store: Store, learnings: Iterable[Learning]) -> tuple[list[Learning], dict[str, int] | None]:
    """Learnings as the organisation wants them stored."""
    redactor = Redactor(await store.read(stored_kinds))
    if redactor.found is None:
        return list(learnings), None
    return await asyncio.to_thread(lambda: [redactor.learning(learning) for learning in learnings]), redactor.found


async def redact_values(store: Store, values: dict[str, Any]) -> dict[str, Any]:
    """The new values of an edited learning, as the organisation wants them stored."""
    redactor = Redactor(await store.read(stored_kinds))
    return values if redactor.found is None else await asyncio.to_thread(redactor.json, values)


async def redact_turns(
    turns: list[InteractionData], kinds: Collection[RedactionKind]
) -> tuple[list[InteractionData], dict[str, int] | None]:
    """The turns of a publish as they are stored."""
    redactor = Redactor(kinds)
    if redactor.found is None:
        return turns, None

    def redact() -> list[InteractionData]:
        return [redactor.turn(turn) for turn in turns]

    is_short = len(turns) < 50 and all(len(turn.content) < SHORT and not turn.tools_used for turn in turns)
    return (redact() if is_short else await asyncio.to_thread(redact)), redactor.found


def _object(entries: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Two keys may become the same mark: the second is numbered, so that no value is lost."""
    result: dict[str, Any] = {}
    numbers: Counter[str] = Counter()
    for key, value in entries:
        unique = key
        while unique in result:
            numbers[key] += 1
            unique = f"{key} {numbers[key] + 1}"
        result[unique] = value
    return result


def _merge(spans: Iterable[Span]) -> list[Span]:
    """Spans in order, those that overlap as one."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _replace(text: str, spans: list[Span], mark: str) -> str:
    parts, place = [], 0
    for start, end in spans:
        parts += [text[place:start], mark]
        place = end
    return "".join([*parts, text[place:]])
