"""What to put into a prompt: the learnings that are worth most for the room they take.

The text is the same for the same choice, whatever the order of the ranking, so that providers' prompt caches
hit; and a stored text cannot step out of its place in it.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from reflexio.models.learning import Kind, Learning
from reflexio.retrieval.exam import UNEXAMINED, Grade
from reflexio.retrieval.fusion import ByVectors, ByWords, Hit, fuse

WEAK = 0.35
"""A learning with less than this share of the best one's evidence is left out: it is there by chance."""
TELLING, TELLING_ALONE = 2.0, 0.5
"""Nats of a match by words that count against the vectors' word, and without it."""
REPEATED = 0.8
"""A learning with this share of its words in one that is there already says nothing new."""
HEADINGS = {
    Kind.PROFILE: "About this user",
    Kind.USER_PLAYBOOK: "What this user taught",
    Kind.AGENT_PLAYBOOK: "What works for everybody",
}
OPENING, CLOSING = "<learned>", "</learned>"


@dataclass(frozen=True)
class Candidate:
    """A learning that was found, and the evidence for it among the rows of its own kind."""

    learning: Learning
    hit: Hit


@dataclass(frozen=True)
class Context:
    text: str
    learnings: tuple[Learning, ...]
    tokens: int


def tokens(text: str) -> int:
    """About how many tokens, rather too many than too few: any tokeniser, any script."""
    plain = sum(character.isascii() for character in text)
    return math.ceil(plain / 3.5) + (len(text) - plain)


def line(learning: Learning) -> str:
    said = _escaped(learning.content)
    return f"- When {_escaped(learning.trigger)}: {said}" if learning.trigger else f"- {said}"


def _escaped(text: str) -> str:
    one_line = " ".join(text.split())
    return one_line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def compose(candidates: Sequence[Candidate], max_tokens: int, *, grade: Grade = UNEXAMINED) -> Context:
    """The most valuable learnings that fit, each said once. `grade` tells which cosines are mere noise."""
    worth = _worth([each for each in candidates if _is_relevant(each.hit, grade.noise)], grade)
    best = max(worth.values(), default=0.0)
    strong = [each.learning for each in candidates if worth.get(each.learning.id, 0.0) >= max(WEAK * best, 1e-9)]
    chosen: list[Learning] = []
    for each in sorted(strong, key=lambda each: (-worth[each.id] / tokens(line(each)) ** 0.5, each.id)):
        if any(_says_nothing_new(each, other) for other in chosen):
            continue
        if tokens(render([*chosen, each])) <= max_tokens:
            chosen.append(each)
    text = render(chosen)
    return Context(text, tuple(_ordered(chosen)), tokens(text))


def _is_relevant(hit: Hit, noise: float) -> bool:
    if hit.vector_score is None:
        return hit.words_evidence >= TELLING_ALONE
    return hit.vector_score >= noise or hit.words_evidence >= TELLING


def _worth(candidates: Sequence[Candidate], grade: Grade) -> dict[int, float]:
    """All kinds weighed on one scale: how unlikely their words and their cosine are among strangers."""
    by_words = sorted((each.hit for each in candidates if each.hit.words_rank), key=lambda hit: -hit.words_evidence)
    near = {each.hit.id: each.hit.vector_score for each in candidates if each.hit.vector_score is not None}
    words = ByWords([hit.id for hit in by_words], [hit.words_evidence for hit in by_words], [0.0] * len(by_words))
    vectors = ByVectors(list(near), list(near.values()), grade.mean, grade.spread)
    return {hit.id: hit.score for hit in fuse(words, vectors, trust=grade.trust).hits}


def render(learnings: Sequence[Learning]) -> str:
    if not learnings:
        return ""
    parts = [OPENING]
    for kind, heading in HEADINGS.items():
        if mine := [each for each in _ordered(learnings) if each.kind is kind]:
            parts += [f"{heading}:", *map(line, mine)]
    return "\n".join([*parts, CLOSING])


def _ordered(learnings: Sequence[Learning]) -> list[Learning]:
    places = list(HEADINGS)
    return sorted(learnings, key=lambda each: (places.index(each.kind), each.id))


def _says_nothing_new(learning: Learning, said: Learning) -> bool:
    mine = _words(learning)
    return len(mine & _words(said)) >= REPEATED * max(1, len(mine))


def _words(learning: Learning) -> set[str]:
    return set(re.findall(r"\w+", learning.text.lower()))
