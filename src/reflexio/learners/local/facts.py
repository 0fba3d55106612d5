"""Facts about the user, from what they say of themselves. Each becomes a sentence in the third person."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from reflexio.learners.local.fact_cues import AFFECTED, CUES, DANGLING, FOREIGN, PASSING, TELLING
from reflexio.learners.local.persons import of_the_user
from reflexio.learners.local.sentences import MASK, Sentence

FEWEST_WORDS = 3  # "I'm vegetarian" counts as three

_LEAD_IN = re.compile(
    r"^(?:(?:and|but|so|well|also|plus|oh|yes|yeah|no|hi|hello|hey|hmm|ok(?:ay)?|sure|thanks|actually|honestly|personally|"
    r"besides|anyway|however|remember|please\s+(?:note|remember)|note|fyi|btw|by\s+the\s+way|just\s+so\s+you\s+know|you\s+know|"
    r"as\s+you\s+know|you\s+should\s+know|i\s+(?:think|guess|mean|must\s+say|should\s+mention|have\s+to\s+(?:say|admit)|admit|"
    r"realized|forgot\s+to\s+mention)|"
    r"i(?:['’]ve)?\s+(?:already\s+)?(?:told|said)\s+you(?:\s+that)?|like\s+i\s+said|as\s+i\s+(?:said|mentioned)|to\s+be\s+honest|in\s+general|generally|usually|normally|typically|lately|these\s+days|since\s+then|"
    r"on\s+(?:another|a\s+different|a\s+related|a\s+side)\s+(?:note|topic)|most\s+of\s+the\s+time|most\s+\w+s|"
    r"speaking\s+of\s+[^,]{1,60}|for\s+(?:context|me|the\s+record)|when\s+[^,]{1,60}|as\s+for\s+[^,]{1,40}|"
    r"although|though|because|since|as|while|whereas|like\s+how|just\s+like\s+how|much\s+like\s+how|how|that|"
    r"in\s+my\s+(?:free|spare)\s+time|as\s+an?\s+[^,]{1,60}|as\s+someone\s+[^,]{1,120})\b[\s,:–-]*)+",
    re.I,
)
# A new clause begins where the speaker speaks of themselves again, or turns to something else.
_BREAK = re.compile(
    r"\s+[-–—]{1,2}\s+|(?:\s*[;]|,)\s+(?:(?:and|but|so|although|though|because|since|as|while|yet|plus|which\s+is\s+why|"
    r"(?:just|much)?\s*like\s+how)\s+)?(?=(?:I|my)\b)"
    r"|\s+(?:but|because|since|although|though|while|whereas|so|as|just\s+like\s+how|like\s+how|and)\s+(?=(?:I|I['’]\w+)\s)"
    r"|\s+of\s+how\s+(?=I\b)|,\s+(?=(?:it|they|he|she|that|this)(?:['’]\w+)?\s)"
    r"|,?\s+but\s+|,\s+so\s+(?!much\b)|;\s+|,\s+though\b|,\s+(?:and|or)\s+(?=(?:do|can|could|would|what|how|are|is)\s)"
    r"|,?\s+please\s+|,\s+(?=(?:any|do|can|could|would|what|how|which|where|is|are)\s)"
    r"|\s+and\s+(?=(?:the|you|it|my|we|attempted|tried|wanted|started|noticed|would|want|wanna|need|i['’]\w+)\s)",
    re.I,
)


@dataclass(frozen=True)
class Fact:
    """Something about the user, and the words it was told in."""

    about: str
    weight: float
    content: str
    sentence: Sentence


def facts(sentence: Sentence) -> Iterator[Fact]:
    """What a sentence tells about its speaker."""
    for start, end in _clauses(sentence.own):
        found = _fact(sentence, start, end)
        if found:
            yield found
    for aside, about, weight in TELLING:
        if told := aside.search(sentence.own):
            words = sentence.text[told.start(1) : told.end(1)]
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
