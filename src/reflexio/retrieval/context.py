"""What to put into a prompt: the learnings that are worth most for the room they take.

The text is the same for the same choice, whatever the order of the ranking, so that providers' prompt caches
hit; and a stored text cannot step out of its place in it.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from reflexio.models.learning import Kind, Learning

WEAK = 0.35
"""A learning with less than this share of the best one's evidence is left out: it is there by chance."""
REPEATED = 0.8
"""Two learnings that share this many of their words say the same."""
HEADINGS = {
    Kind.PROFILE: "About this user",
    Kind.USER_PLAYBOOK: "What this user taught",
    Kind.AGENT_PLAYBOOK: "What works for everybody",
}
OPENING, CLOSING = "<learned>", "</learned>"


@dataclass(frozen=True)
class Candidate:
    learning: Learning
    score: float


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


def compose(candidates: Sequence[Candidate], max_tokens: int) -> Context:
    """The most valuable learnings that fit, each said once."""
    best = max((each.score for each in candidates), default=0.0)
    strong = [each for each in candidates if each.score >= WEAK * best]
    chosen: list[Learning] = []
    for each in sorted(strong, key=lambda each: (-each.score / tokens(line(each.learning)) ** 0.5, each.learning.id)):
        if any(_same(each.learning, other) for other in chosen):
            continue
        if tokens(render([*chosen, each.learning])) <= max_tokens:
            chosen.append(each.learning)
    text = render(chosen)
    return Context(text, tuple(_ordered(chosen)), tokens(text))


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


def _same(one: Learning, other: Learning) -> bool:
    mine, yours = _words(one), _words(other)
    return len(mine & yours) >= REPEATED * max(1, min(len(mine), len(yours)))


def _words(learning: Learning) -> set[str]:
    return set(re.findall(r"\w+", learning.content.lower()))
