"""Facts about the user, from what they say about themselves. Each becomes a sentence in the third person.

The cues are in `cues.toml`: the beginnings of clauses that state a lasting fact, with their weights.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from reflexio.learners.local.grammar import in_third_person
from reflexio.learners.local.sentences import CUES, MASK, Sentence
from reflexio.models.learning import ProfileTimeToLive as Live

FEWEST_WORDS = 3  # "I'm vegetarian" counts as three


@cache
def _beginnings() -> list[tuple[str, float, re.Pattern[str]]]:
    """How clauses begin that state a fact: what it is about, its weight, and the pattern."""
    patterns = (CUES.compile("(\n" + "|\n".join(cue["beginnings"]) + "){end}") for cue in CUES.data["facts"])
    return [(cue["about"], cue["weight"], pattern) for cue, pattern in zip(CUES.data["facts"], patterns, strict=True)]


@cache
def _asides() -> list[tuple[str, float, re.Pattern[str]]]:
    return [(cue["about"], cue["weight"], CUES.compile(cue["pattern"])) for cue in CUES.data["asides"]]


@cache
def _lifetimes() -> list[tuple[Live, re.Pattern[str]]]:
    return [(Live(name), CUES.compile(times)) for name, times in CUES.data["lifetimes"].items()]


@dataclass(frozen=True)
class Fact:
    """Something about the user, and the sentence that says it."""

    about: str
    weight: float
    content: str
    sentence: Sentence
    is_aside: bool = False  # not what the sentence begins with


def facts(sentence: Sentence) -> Iterator[Fact]:
    """What a sentence says about its speaker."""
    for place, (start, end) in enumerate(_clauses(sentence.own)):
        if (fact := _fact(sentence, start, end)) and not CUES["joking"].search(sentence.own):
            for part in _joined(fact, sentence.own[start:end], sentence.text[start:end]):
                yield replace(part, is_aside=place > 0)
    for about, weight, aside in _asides():
        if match := aside.search(sentence.own):
            who = sentence.text[match.start("who") : match.end("who")]
            yield Fact(about, weight, in_third_person(f"I am {who}"), sentence)


def time_to_live(about: str, text: str) -> Live:
    """How long a fact holds: traits for good, plans as long as the time they name.

    >>> time_to_live("goal", "I'm flying to Oslo tomorrow").value
    'one_day'
    >>> time_to_live("identity", "I live in Oslo").value
    'infinity'
    """
    default = Live.ONE_QUARTER if about == "goal" else Live.INFINITY
    return next((lifetime for lifetime, pattern in _lifetimes() if pattern.search(text)), default)


def _fact(sentence: Sentence, start: int, end: int) -> Fact | None:
    own, text = sentence.own[start:end], sentence.text[start:end]
    is_question = sentence.is_question and end >= len(sentence.own.rstrip(" ?!"))  # the last clause of a question
    if is_question or MASK in own:
        return None
    if cue := _cue_of(own):
        fact = Fact(*cue, _statement(text), sentence)
    elif CUES["affected"].match(own):
        fact = Fact("health", 0.9, in_third_person(text), sentence)
    else:
        return None
    return None if len(re.findall(r"\w+", text)) < FEWEST_WORDS or CUES["momentary"].search(own) else fact


def _statement(text: str) -> str:
    """A fact in the third person; a time that is only named with "please" is one that the user wants."""
    wish = CUES["wished_time"].match(text)
    return in_third_person(f"I want {wish['when'].lower()}" if wish else text)


def _cue_of(own: str) -> tuple[str, float] | None:
    """What a clause that states a fact is about, and its weight."""
    for about, weight, beginning in _beginnings():
        if (match := beginning.match(own)) and not CUES["dangling"].match(own[match.end() :]):
            return about, weight
    return None


def _joined(fact: Fact, own: str, text: str) -> Iterator[Fact]:
    """Two facts of one subject apart: "I live in Berlin and work at a bakery". What refers back stays."""
    for join in CUES["joined_fact"].finditer(own):
        second = f"I {own[join.end() :]}"
        if (cue := _cue_of(second)) and not CUES["refers_back"].search(second):
            yield replace(fact, content=in_third_person(text[: join.start()]))
            yield Fact(*cue, in_third_person(f"I {text[join.end() :]}"), fact.sentence)
            return
    yield fact


def _clauses(own: str) -> Iterator[tuple[int, int]]:
    """Where the clauses stand, without the words that only lead in, such as "as" and "since"."""
    start = 0
    gaps = [gap.span() for gap in CUES["clause_break"].finditer(own)]
    for end, following in [*gaps, (len(own), len(own))]:
        lead = CUES["fact_lead_in"].match(own[start:end])
        yield (start + lead.end() if lead else start), end
        start = following
