"""The versions of a learning's wording, from what it says now and from what each edit has replaced."""

import dataclasses
from collections.abc import Sequence

from reflexio.models.learning import Learning, Scope
from reflexio.ports.storage import LineageEvent

WORDING = ("name", "trigger", "content", "rationale", "scope")


@dataclasses.dataclass(frozen=True)
class WordingVersion:
    """What a learning said from `since` on, and the event that made it so; None for what was learned at first."""

    learning: Learning
    since: int
    event: LineageEvent | None = None


def wording_history(learning: Learning, events: Sequence[LineageEvent]) -> list[WordingVersion]:
    """Newest first. `events` are the lineage, oldest first; events that changed no word make no version."""
    versions, current = list[WordingVersion](), learning
    for event in reversed(events):
        before = _before(current, event)
        if before != current:
            versions.append(WordingVersion(current, event.at, event))
            current = before
    since = min([learning.created_at, *(event.at for event in events)])
    return [*versions, WordingVersion(current, since)]


def _before(learning: Learning, event: LineageEvent) -> Learning:
    old = {name: text for name, text in event.details.get("wording", {}).items() if name in WORDING}
    if "scope" in old:
        old["scope"] = Scope(old["scope"])
    return dataclasses.replace(learning, **old)
