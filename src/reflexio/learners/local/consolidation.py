"""What happens to a candidate next to what is stored: it is known, says more, contradicts it, or is new."""

import re

from reflexio.language.choices import other_choice
from reflexio.language.contradiction import instruction_replacement, replacement
from reflexio.language.words import content_words, figures
from reflexio.learners.local.languages.changes import METADATA, decide_by_words
from reflexio.models.extraction import EVERYTHING, Decision, ExtractedLearning, Neighbour, Neighbourhood
from reflexio.models.learning import Kind

IDENTICAL = 0.97
SAME_MATTER = 0.75
RELATED = 0.6  # cosine from which one learning can contain another
ABOUT_SUBJECT = 0.55
NAMES_SUBJECT = 0.3  # enough when the learning contains the words to be forgotten
LONGEST = 700

_OWNER = re.compile(r"The user's (\w+)", re.I)


def decide(question: Neighbourhood) -> Decision:
    candidate = question.candidate
    if candidate.forget:
        return _forget(question)
    if METADATA in candidate.metadata:
        return decide_by_words(candidate, [near for near in question.neighbours if _is_of_type(candidate, near)])
    near = [
        neighbour
        for neighbour in question.neighbours
        if _is_of_type(candidate, neighbour) and _is_same_case(candidate, neighbour)
    ]
    return (
        _replace_contradicted(question)
        or _drop_unneeded(candidate)
        or _drop_known(candidate, near)
        or _merge(candidate, near)
        or Decision("add", reason="Nothing stored says this.")
    )


def _forget(question: Neighbourhood) -> Decision:
    subject = question.candidate.content
    words = content_words(subject)
    targets = tuple(
        neighbour.learning.id
        for neighbour in question.neighbours
        if subject == EVERYTHING
        or neighbour.similarity >= (NAMES_SUBJECT if words & content_words(neighbour.learning.text) else ABOUT_SUBJECT)
    )
    if not targets:
        return Decision("drop", reason="Nothing stored is about what should be forgotten.")
    return Decision("forget", targets, reason="The user asked to forget it.")


def replaces(candidate: ExtractedLearning, kind: Kind, content: str, trigger: str, similarity: float) -> str:
    """Why a new learning replaces another one; empty when both can stand."""
    if candidate.kind is not kind or _owner(candidate.content) != _owner(content):
        return ""
    if kind is Kind.PROFILE:
        return replacement(candidate.content, content, similarity)
    if not (candidate.trigger or trigger) and (matter := other_choice(candidate.content, content)):
        return f"another {matter} was chosen"
    reason = instruction_replacement(candidate.content, content, similarity)
    # Whoever says the same with another value means the same, also after another request.
    shared = len(content_words(candidate.content) & content_words(content))
    is_same = not candidate.trigger or _share_case(candidate.trigger, trigger) or (shared > 1 and trigger != "")
    return reason if is_same else ""


def _replace_contradicted(question: Neighbourhood) -> Decision | None:
    candidate = question.candidate
    reasons: dict[int, str] = {}
    for neighbour in question.neighbours:
        stored = neighbour.learning
        if stored.name in ("", candidate.name) and (
            reason := replaces(candidate, stored.kind, stored.content, stored.trigger, neighbour.similarity)
        ):
            reasons[stored.id] = reason
    if not reasons:
        return None
    first = next(iter(reasons.values()))
    return Decision("replace", tuple(reasons), reason=f"It contradicts what was stored: {first}.")


def _drop_unneeded(candidate: ExtractedLearning) -> Decision | None:
    return Decision("drop", reason="It takes back nothing that is stored.") if candidate.only_replaces else None


def _drop_known(candidate: ExtractedLearning, near: list[Neighbour]) -> Decision | None:
    words, numbers = content_words(candidate.content), figures(candidate.content)
    for neighbour in near:
        stored = neighbour.learning.content
        says_no_more = words <= content_words(stored) and numbers <= figures(stored)
        if neighbour.similarity >= (RELATED if says_no_more else IDENTICAL):
            return Decision("drop", (neighbour.learning.id,), reason="It is known already.")
    return None


def _merge(candidate: ExtractedLearning, near: list[Neighbour]) -> Decision | None:
    """With the wording of the candidate where it says all that was stored, else with both."""
    words = content_words(candidate.content)
    contained = tuple(
        neighbour.learning.id
        for neighbour in near
        if content_words(neighbour.learning.content) <= words and neighbour.similarity >= RELATED
    )
    if contained:
        reason = "It says what was stored, and more."
        return Decision("merge", contained, candidate.content, candidate.trigger, candidate.rationale, reason)
    stored = next((neighbour.learning for neighbour in near if neighbour.similarity >= SAME_MATTER), None)
    if stored is None or len(stored.content) + len(candidate.content) > LONGEST:
        return None
    return Decision(
        "merge",
        (stored.id,),
        f"{stored.content.rstrip()} {candidate.content}",
        candidate.trigger or stored.trigger,
        candidate.rationale or stored.rationale,
        "Both are about the same, and each says something the other does not.",
    )


def _is_of_type(candidate: ExtractedLearning, neighbour: Neighbour) -> bool:
    return neighbour.learning.name in ("", candidate.name)


def _is_same_case(candidate: ExtractedLearning, neighbour: Neighbour) -> bool:
    """Facts about different people, and playbooks for different requests, stand beside each other."""
    stored = neighbour.learning
    return _owner(candidate.content) == _owner(stored.content) and _share_case(candidate.trigger, stored.trigger)


def _owner(content: str) -> str:
    match = _OWNER.match(content)
    return match[1].lower() if match else ""


def _share_case(trigger: str, stored_trigger: str) -> bool:
    words, stored = content_words(trigger), content_words(stored_trigger)
    return len(words & stored) * 2 >= min(len(words), len(stored)) and bool(words) == bool(stored)
