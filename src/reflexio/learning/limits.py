"""How much one window may teach: texts that are too long lose their last sentences or are refused, and so is what
exceeds the learnings of a window."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from reflexio.models.extraction import Decision, ExtractedLearning, Quote
from reflexio.models.wording import (
    LONGEST_CONTENT,
    LONGEST_METADATA,
    LONGEST_QUOTE,
    LONGEST_RATIONALE,
    LONGEST_TRIGGER,
    MOST_QUOTES,
    cut_at_sentence,
    without_hidden,
    without_hidden_in,
)

MOST_LEARNINGS = 32
"""Of a window; a longer window may teach one for each of its new turns."""


@dataclass(frozen=True)
class Limited:
    """The candidates within the limits, how many of them were shortened, and how many others refused."""

    candidates: tuple[ExtractedLearning, ...]
    shortened: int = 0
    refused: int = 0


def within_limits(candidates: Sequence[ExtractedLearning], new_turns: int) -> Limited:
    clean = [_clean(candidate) for candidate in candidates]
    shortened = [_shortened(candidate) for candidate in clean]
    kept = [candidate for candidate in shortened if candidate][: max(MOST_LEARNINGS, new_turns)]
    count = sum(candidate not in clean for candidate in kept)
    return Limited(tuple(kept), count, len(candidates) - len(kept))


def limited_decision(decision: Decision, candidate: ExtractedLearning) -> Decision:
    """A merged wording that is too long to be kept whole retires nothing: the new learning is added as it is."""
    reason = without_hidden(decision.reason)[:LONGEST_RATIONALE]
    if not decision.content:
        return replace(decision, reason=reason)
    wording = replace(candidate, content=decision.content, trigger=decision.trigger, rationale=decision.rationale)
    clean = _clean(wording)
    if (shortened := _shortened(clean)) is None or shortened.content != clean.content:
        return Decision("add", reason="the merged wording is too long")
    trigger, rationale = shortened.trigger, shortened.rationale
    return replace(decision, content=clean.content, trigger=trigger, rationale=rationale, reason=reason)


def _clean(candidate: ExtractedLearning) -> ExtractedLearning:
    return replace(
        candidate,
        content=without_hidden(candidate.content).strip(),
        trigger=without_hidden(candidate.trigger).strip(),
        rationale=without_hidden(candidate.rationale).strip(),
        evidence=tuple(Quote(quote.turn_id, without_hidden(quote.text)) for quote in candidate.evidence),
        metadata=without_hidden_in(candidate.metadata),
    )


def _shortened(candidate: ExtractedLearning) -> ExtractedLearning | None:
    """None when no whole sentence of the content or the trigger fits."""
    content = cut_at_sentence(candidate.content, LONGEST_CONTENT)
    trigger = cut_at_sentence(candidate.trigger, LONGEST_TRIGGER)
    if not content or bool(trigger) != bool(candidate.trigger):
        return None
    is_small = len(json.dumps(candidate.metadata, default=str)) <= LONGEST_METADATA
    return replace(
        candidate,
        content=content,
        trigger=trigger,
        rationale=cut_at_sentence(candidate.rationale, LONGEST_RATIONALE),
        evidence=tuple(Quote(quote.turn_id, quote.text[:LONGEST_QUOTE]) for quote in candidate.evidence[:MOST_QUOTES]),
        metadata=candidate.metadata if is_small else {},
    )
