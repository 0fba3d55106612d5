"""Facts about the user, from what they say of themselves. Each becomes a sentence in the third person."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from reflexio.learners.local.fact_cues import AFFECTED, CUES, DANGLING, FOREIGN, PASSING, TELLING
from reflexio.learners.local.persons import of_the_user
from reflexio.learners.local.phrases import phrase
from reflexio.learners.local.sentences import MASK, Sentence

FEWEST_WORDS = 3  # "I'm vegetarian" counts as three

_LEAD_IN = phrase(
    r"^((and|but|so|well|also|plus|oh|yes|yeah|no|hi|hello|hey|hmm|ok(ay)?|sure|thanks|actually|honestly|personally|"
    r"besides|anyway|however|remember|please (note|remember)|note|fyi|btw|by the way|just so you know|you know|"
    r"as you know|you should know|i (think|guess|mean|must say|should mention|have to (say|admit)|admit|"
    r"realized|forgot to mention)|i('ve)? (already )?(told|said) you( that)?|like i said|as i (said|mentioned)|"
    r"to be honest|in general|generally|usually|normally|typically|lately|these days|since then|"
    r"on (another|a different|a related|a side) (note|topic)|most of the time|most \w+s|"
    r"speaking of [^,]{1,60}|for (context|me|the record)|when [^,]{1,60}|as for [^,]{1,40}|"
    r"although|though|because|since|as|while|whereas|like how|just like how|much like how|how|that|"
    r"in my (free|spare) time|as an? [^,]{1,60}|as someone [^,]{1,120})\b[\s,:–-]*)+",
)
# A new clause begins where the speaker speaks of themselves again, or turns to something else.
_BREAK = phrase(
    r" [-–—]{1,2} |(\s*[;]|,) ((and|but|so|although|though|because|since|as|while|yet|plus|which is why|"
    r"(just|much)?\s*like how) )?(?=(I|my)\b)| (but|because|since|although|though|while|whereas|so|as|just like how|"
    r"like how|and) (?=(I|I'\w+)\s)| of how (?=I\b)|, (?=(it|they|he|she|that|this)('\w+)?\s)"
    r"|,? but |, so (?!much\b)|; |, though\b|, (and|or) (?=(do|can|could|would|what|how|are|is)\s)"
    r"|,? please |, (?=(any|do|can|could|would|what|how|which|where|is|are)\s)"
    r"| and (?=(the|you|it|my|we|attempted|tried|wanted|started|noticed|would|want|wanna|need|i'\w+)\s)",
)


@dataclass(frozen=True)
class Fact:
    """Something about the user, and the words it was told in."""

    about: str
    weight: float
    content: str
    sentence: Sentence
    is_aside: bool = False  # not what the sentence begins with


def facts(sentence: Sentence) -> Iterator[Fact]:
    """What a sentence tells about its speaker."""
    for place, (start, end) in enumerate(_clauses(sentence.own)):
        found = _fact(sentence, start, end)
        if found:
            yield replace(found, is_aside=place > 0)
    for aside, about, weight in TELLING:
        if told := aside.search(sentence.own):
            words = sentence.text[told.start("who") : told.end("who")]
            yield Fact(about, weight, of_the_user(f"I am {words}"), sentence)


def _fact(sentence: Sentence, start: int, end: int) -> Fact | None:
    own, words = sentence.own[start:end], sentence.text[start:end]
    if MASK in own or PASSING.search(own) or len(re.findall(r"\w+", words)) < FEWEST_WORDS or _is_asked(sentence, end):
        return None
    for cue in CUES:
        if (begun := cue.begins.match(own)) and not DANGLING.match(own[begun.end() :]):
            return Fact(cue.about, cue.weight, of_the_user(words), sentence)
    if AFFECTED.match(own):
        return Fact("health", 0.9, of_the_user(words), sentence)
    if FOREIGN.match(own):
        return Fact("foreign", 0.9, f"The user says: “{words.rstrip(' .!,')}”", sentence)
    return None


def _is_asked(sentence: Sentence, end: int) -> bool:
    """The last clause of a question is the question."""
    return sentence.is_question and end >= len(sentence.own.rstrip(" ?!"))


def _clauses(own: str) -> Iterator[tuple[int, int]]:
    start = 0
    for gap in _BREAK.finditer(own):
        yield _stripped(own, start, gap.start())
        start = gap.end()
    yield _stripped(own, start, len(own))


def _stripped(own: str, start: int, end: int) -> tuple[int, int]:
    """Without what only leads in. "As I", "since I": the connection goes, the clause stays."""
    lead = _LEAD_IN.match(own[start:end])
    return (start + lead.end() if lead else start), end
