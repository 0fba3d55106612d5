"""What becomes of a candidate next to what is stored: known, a part of it, against it, or new."""

import re

from reflexio.learners.local.contradictions import changed_order, contradiction
from reflexio.learners.local.forgetting import EVERYTHING
from reflexio.learners.local.words import figures, meaning
from reflexio.models.learned import Candidate, Decision, Neighbour, Neighbourhood
from reflexio.models.learning import Kind

IDENTICAL = 0.97
SAME_MATTER = 0.75
ABOUT_IT = 0.55
NAMES_IT = 0.3  # enough when the words to be forgotten stand in the learning
LONGEST = 700

_OWNED = re.compile(r"The user's (\w+)", re.I)
_ADD = Decision("add", reason="Nothing stored says this.")


def decide(question: Neighbourhood) -> Decision:
    candidate = question.candidate
    if candidate.forget:
        return _forget(question)
    near = [each for each in question.neighbours if each.learning.name in ("", candidate.name)]
    return _contradicted(candidate, near) or _known(candidate, near) or _merged(candidate, near) or _ADD


def _forget(question: Neighbourhood) -> Decision:
    what = question.candidate.content
    targets = [each.learning.id for each in question.neighbours if what == EVERYTHING or _is_about(each, what)]
    if not targets:
        return Decision("drop", reason="Nothing stored is about what should be forgotten.")
    return Decision("forget", tuple(targets), reason="The user asked to forget it.")


def _is_about(neighbour: Neighbour, what: str) -> bool:
    named = bool(meaning(what) & meaning(neighbour.learning.text))
    return neighbour.similarity >= (NAMES_IT if named else ABOUT_IT)


def _contradicted(candidate: Candidate, near: list[Neighbour]) -> Decision | None:
    against = [
        (each.learning.id, why) for each in near if _same_case(candidate, each) and (why := _against(candidate, each))
    ]
    if not against:
        return None
    targets = tuple(row for row, _ in against)
    return Decision("replace", targets, reason=f"It contradicts what was stored: {against[0][1]}.")


def _against(candidate: Candidate, neighbour: Neighbour) -> str:
    newer, older = candidate.content, neighbour.learning.content
    found = contradiction(newer, older, neighbour.similarity)
    if found or candidate.kind is Kind.PROFILE:
        return found
    return changed_order(newer, older, neighbour.similarity)


def _known(candidate: Candidate, near: list[Neighbour]) -> Decision | None:
    words = meaning(candidate.content)
    for each in near:
        stored = each.learning.content
        says_no_more = words <= meaning(stored) and figures(candidate.content) <= figures(stored)
        if _same_case(candidate, each) and (each.similarity >= IDENTICAL or (says_no_more and each.similarity >= 0.6)):
            return Decision("drop", (each.learning.id,), reason="It is known already.")
    return None


def _merged(candidate: Candidate, near: list[Neighbour]) -> Decision | None:
    """With the wording of the candidate where it says all that was stored, else with both."""
    words = meaning(candidate.content)
    contained = [
        each
        for each in near
        if meaning(each.learning.content) <= words and each.similarity >= 0.6 and _same_case(candidate, each)
    ]
    if contained:
        targets = tuple(each.learning.id for each in contained)
        return Decision(
            "merge",
            targets,
            candidate.content,
            candidate.trigger,
            candidate.rationale,
            "It says what was stored, and more.",
        )
    alike = next((each for each in near if each.similarity >= SAME_MATTER and _same_case(candidate, each)), None)
    if alike is None or len(alike.learning.content) + len(candidate.content) > LONGEST:
        return None
    stored = alike.learning
    return Decision(
        "merge",
        (stored.id,),
        f"{stored.content.rstrip()} {candidate.content}",
        candidate.trigger or stored.trigger,
        candidate.rationale or stored.rationale,
        "Both are about the same, and each says something the other does not.",
    )


def _same_case(candidate: Candidate, neighbour: Neighbour) -> bool:
    """Facts about different people, and playbooks for different requests, stand beside each other."""
    if _whose(candidate.content) != _whose(neighbour.learning.content):
        return False
    mine, theirs = meaning(candidate.trigger), meaning(neighbour.learning.trigger)
    return len(mine & theirs) * 2 >= min(len(mine), len(theirs)) and bool(mine) == bool(theirs)


def _whose(content: str) -> str:
    found = _OWNED.match(content)
    return found[1].lower() if found else ""
