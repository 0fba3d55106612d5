"""Why each learning is in a context, and why others that competed are not, in words for people."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from reflexio.language.words import content_words, root, words
from reflexio.models.learning import Kind, Learning
from reflexio.retrieval import context
from reflexio.retrieval.context import RankedLearning, Relevance
from reflexio.retrieval.service import ComposedContext

Layer = Literal["always", "relevant"]


@dataclass(frozen=True)
class ContextReason:
    """A learning that competed for a place, and why it is in the context or not.

    `cosine` is that of the message and the learning, `case` that of the message and the nearest turn it was learned
    from. `relevance` and `least` are in spreads of unrelated sentences. `shared_words` are in message and learning.
    """

    learning: Learning
    layer: Layer
    is_included: bool
    why: str
    tokens: int
    shared_words: tuple[str, ...] = ()
    cosine: float | None = None
    case: float | None = None
    relevance: float | None = None
    least: float | None = None


def explain(composed: ComposedContext, query: str) -> list[ContextReason]:
    """Those in the context in the order of its lines, then the others, most relevant first."""
    reasons = [*_always(composed), *_relevant(composed, query)]
    lines = [learning.id for learning in composed.chosen.learnings]
    included = sorted(
        (reason for reason in reasons if reason.is_included), key=lambda reason: lines.index(reason.learning.id)
    )
    others = [reason for reason in reasons if not reason.is_included]
    return [*included, *sorted(others, key=lambda reason: (reason.layer, -(reason.relevance or 0.0)))]


def _always(composed: ComposedContext) -> Iterator[ContextReason]:
    shown = {learning.id for learning in composed.chosen.always}
    also_shown = {learning.id for learning in composed.chosen.relevant}
    said = {context.normalised(learning) for learning in composed.chosen.learnings}
    for learning in composed.always:
        if learning.id in also_shown:
            continue
        is_included = learning.id in shown
        why = _why_always(learning) if is_included else _why_not_always(learning, said)
        yield ContextReason(learning, "always", is_included, why, _tokens(learning))


def _why_always(learning: Learning) -> str:
    if learning.kind is Kind.AGENT_PLAYBOOK:
        return "It holds for everybody, whatever is asked."
    return "It holds for this user, whatever is asked."


def _why_not_always(learning: Learning, said: set[tuple[tuple[str, ...], tuple[str, ...]]]) -> str:
    if context.normalised(learning) in said:
        return "Another line says the same."
    return "There is no room left in the layer for what always holds."


def _relevant(composed: ComposedContext, query: str) -> Iterator[ContextReason]:
    shown = {learning.id for learning in composed.chosen.relevant}
    standing = {learning.id for learning in composed.chosen.always}
    said = {context.normalised(learning) for learning in composed.chosen.learnings}
    competing = [entry for entry in composed.ranked if entry.learning.id not in standing]
    found = context.relevances(competing, composed.calibration, query=query)
    asked, told = content_words(query), {learning.id for learning in composed.always} - shown
    for entry in competing:
        learning, relevance = entry.learning, found[entry.learning.id]
        if learning.id in told:
            continue
        shared = tuple(dict.fromkeys(word for word in words(learning.text) if root(word) in asked))
        is_included = learning.id in shown
        if is_included:
            why = _why_relevant(entry, shared)
        else:
            why = _why_not_relevant(relevance, is_repeat=context.normalised(learning) in said)
        yield ContextReason(
            learning,
            "relevant",
            is_included,
            why,
            _tokens(learning),
            shared,
            entry.hit.vector_score,
            entry.case,
            relevance.value,
            relevance.least,
        )


def _why_relevant(entry: RankedLearning, shared: tuple[str, ...]) -> str:
    cosine = entry.hit.vector_score or 0.0
    reasons = []
    if entry.case is not None and entry.case > cosine:
        reasons.append("The message resembles what somebody said when this was taught.")
    elif entry.hit.vector_score is not None and entry.hit.led_by == "vectors":
        reasons.append("Its meaning is near the message.")
    if shared and (entry.hit.led_by == "words" or not reasons):
        reasons.append("It shares words with the message.")
    return " ".join(reasons) or "It stands out among what could bear on the message."


def _why_not_relevant(relevance: Relevance, *, is_repeat: bool) -> str:
    if relevance.is_short:
        return "The message is too short for a match that is not near."
    if not relevance.is_enough:
        return "It bears too little on the message."
    if is_repeat:
        return "Another line says the same."
    return "There is no room left for it."


def _tokens(learning: Learning) -> int:
    return context.tokens(context.line(learning) + "\n")
