"""What to put into a prompt: the learnings that are worth most for the room they take.

The text is the same for the same choice, whatever the order of the ranking, so that providers' prompt caches
hit; and a stored text cannot step out of its place in it.

Two learnings repeat each other only if they are the same words in the same order: a number, a negation or a name
of difference, in any language, makes another statement. What says the same in other words is merged where it is
learned, not here.
"""

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from reflexio.models.learning import Kind, Learning
from reflexio.retrieval.exam import UNEXAMINED, Grade
from reflexio.retrieval.fusion import ByVectors, ByWords, Hit, fuse

WEAK = 0.35
"""A learning with less than this share of the best one's evidence is left out: it is there by chance."""
TELLING, TELLING_ALONE = 2.0, 0.5
"""Nats of a match by words that count against the vectors' word, and without it."""
BRIEF, FIRM = 3, 3.0
"""A query of so few tokens ("ok", "hello") resembles any short sentence: what fits stands so many spreads off."""
SAME_MATTER = 0.6
"""Two learnings with this share of their words in common may be about one thing."""
NEARLY = 0.8
"""With this share of another's worth a learning is worth about the same."""
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


_DEAR = re.compile(r"\b[A-Za-z]*+[0-9][A-Za-z0-9]*|[A-Z]{2,}|[!-/:-@\[-`{-~\n]|[^\x00-\x7f]")
_COMMON = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
"""Han, kana and hangul: characters that every vocabulary of today holds most of."""


def tokens(text: str) -> int:
    """About how many tokens, rather too many than too few: any tokeniser, any script.

    Three letters of running text are a token. Digits, codes, capitals and punctuation are one each; what is not
    ASCII is one less than its bytes, as tokenisers that do not know a character fall back to those.
    """
    dear = "".join(_DEAR.findall(text))
    beyond = len(dear.encode(errors="replace")) - len(dear)
    common = len(_COMMON.findall(dear)) if beyond else 0
    plain = len(text) - len(dear)
    ascii_only = sum(map(str.isascii, dear)) if beyond else len(dear)
    return math.ceil(plain / 3 - common / 2) + beyond + ascii_only


_FRAME_ROOM = tokens(f"{OPENING}\n{CLOSING}")
_HEADING_ROOM = {kind: tokens(f"{heading}:\n") for kind, heading in HEADINGS.items()}


def line(learning: Learning) -> str:
    said = _escaped(learning.content)
    return f"- When {_escaped(learning.trigger)}: {said}" if learning.trigger else f"- {said}"


def _escaped(text: str) -> str:
    one_line = " ".join(text.split())
    return one_line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def compose(candidates: Sequence[Candidate], max_tokens: int, *, query: str, grade: Grade = UNEXAMINED) -> Context:
    """The most valuable learnings that fit, each said once. `grade` tells which cosines are mere noise."""
    noise = max(grade.noise, grade.mean + FIRM * grade.spread if tokens(query) <= BRIEF else -1.0)
    worth = _worth([each for each in candidates if _is_relevant(each.hit, noise)], grade)
    best = max(worth.values(), default=0.0)
    strong = [each.learning for each in candidates if worth.get(each.learning.id, 0.0) >= max(WEAK * best, 1e-9)]
    text = render(chosen := _chosen(_said_once(strong), worth, max_tokens))
    return Context(text, tuple(_ordered(chosen)), tokens(text))


def _chosen(learnings: Sequence[Learning], worth: Mapping[int, float], max_tokens: int) -> list[Learning]:
    room = {each.id: tokens(line(each) + "\n") for each in learnings}

    def fits(some: Sequence[Learning]) -> bool:
        headings = sum(_HEADING_ROOM[kind] for kind in {each.kind for each in some})
        return _FRAME_ROOM + headings + sum(room[each.id] for each in some) <= max_tokens

    chosen: list[Learning] = []
    for each in sorted(learnings, key=lambda each: (-worth[each.id] / room[each.id] ** 0.5, each.id)):
        if fits([*chosen, each]):
            chosen.append(each)
        elif old := next((old for old in chosen if _may_be_outdated(old, each, worth)), None):
            without = [other for other in chosen if other is not old]
            chosen = [*without, each] if fits([*without, each]) else chosen
    return chosen


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


def _said_once(learnings: Sequence[Learning]) -> list[Learning]:
    """Of those that say the same, the newest."""
    return list({_said(each): each for each in sorted(learnings, key=_age)}.values())


def _age(learning: Learning) -> tuple[int, int]:
    return max(learning.created_at, learning.modified_at), learning.id


_SILENT = re.compile(r"[\s.,;:!?…'\"“”„‘’«»()\[\]、。，！？；：「」『』¿¡]+|\b(?:[Tt]he|an?|[Pp]lease)\b|[-–—]+(?!\d)")
_TERM = re.compile(r"[^\W_]+|\S")


def _said(learning: Learning) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """When, and what, without what makes no difference: case, punctuation, articles."""
    return _terms(learning.trigger), _terms(learning.content)


@lru_cache(maxsize=1024)
def _terms(text: str) -> tuple[str, ...]:
    return tuple(_TERM.findall(_SILENT.sub(" ", unicodedata.normalize("NFKC", text)).casefold()))


def _may_be_outdated(old: Learning, new: Learning, worth: Mapping[int, float]) -> bool:
    """Whether the new one may be a correction of the old one: where there is room for one, the newer word counts."""
    if _age(new) < _age(old) or worth[new.id] < NEARLY * worth[old.id]:
        return False
    one, other = set(_terms(old.text)), set(_terms(new.text))
    return len(one & other) >= SAME_MATTER * max(len(one), len(other))
