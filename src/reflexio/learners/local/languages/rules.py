"""From a turn in another language to what it teaches."""

from collections.abc import Iterator, Sequence
from functools import lru_cache

from reflexio.language.cues import LanguageCues, cues_of
from reflexio.language.identify import ENGLISH, MOST_READ, OTHER, READ, UNDECIDED, language_of
from reflexio.learners.local.candidates import RuleMatch
from reflexio.learners.local.facts import time_to_live
from reflexio.learners.local.languages.changes import METADATA
from reflexio.learners.local.languages.facts import facts
from reflexio.learners.local.languages.orders import Order, orders, rejects_answer
from reflexio.learners.local.languages.speech import Spoken, spoken_sentences, without_case
from reflexio.learners.local.sentences import MASK, quotes, typed_sentences
from reflexio.models.extraction import ExtractedLearning, Quote, Turn
from reflexio.models.learning import Kind, Scope

LONGEST_TRIGGER = 220
FEW_WORDS = 8  # in which a turn may not show its language


def language_of_turn(turns: Sequence[Turn], place: int) -> str:
    """The language of what a user says themselves in a turn; where that decides little, their other turns help."""
    own = _own_words(turns[place].content)
    language = language_of(own)
    if language == ENGLISH or len(own.split()) > FEW_WORDS:
        return language
    others = [_own_words(turn.content) for turn in turns if turn.role == "user" and turn is not turns[place]]
    around = language_of(" ".join(others[-3:])) if others else UNDECIDED
    if language == UNDECIDED:
        return around if around in READ else UNDECIDED
    return language_of(own, around)


@lru_cache(maxsize=512)  # asked for several times while a window is read
def _own_words(content: str) -> str:
    """As much of the user's own words as is needed to tell their language."""
    words, room = [], MOST_READ
    for sentence in typed_sentences(Turn(0, "user", content)):
        words.append(sentence.own.replace(MASK, " "))
        room -= len(sentence.own)
        if room < 0:
            break
    return " ".join(words)


def unread_turns(turns: Sequence[Turn]) -> tuple[int, ...]:
    """The new turns of the user in languages that no rule reads."""
    return tuple(
        turn.id
        for place, turn in enumerate(turns)
        if turn.is_new and turn.role == "user" and language_of_turn(turns, place) == OTHER
    )


def matches_in(language: str, turns: Sequence[Turn], place: int) -> list[RuleMatch]:
    """What a turn teaches in one of the languages that have cues."""
    cues = cues_of(language)
    forgotten = list(_to_forget(turns[place], cues))
    handled = {quote.text for match in forgotten for quote in match.candidate.evidence}
    ordered = [order for order in orders(turns, place, cues) if order.spoken.sentence.text not in handled]
    handled |= {order.spoken.sentence.text for order in ordered}
    return [
        *forgotten,
        *(_from_order(turns, place, order) for order in ordered),
        *_from_facts(turns[place], cues, handled),
    ]


def _from_order(turns: Sequence[Turn], place: int, order: Order) -> RuleMatch:
    cues = order.spoken.cues
    request = None if order.is_standing else _request_before(turns, place, cues)
    trigger = cues.frame("said", without_case(request.sentence.text[:LONGEST_TRIGGER])) if request else ""
    candidate = ExtractedLearning(
        Kind.USER_PLAYBOOK,
        "",
        order.content,
        trigger,
        "The user gave this instruction." if order.is_standing else "The user said how the answer should be.",
        quotes(request.sentence if request else None, order.spoken.sentence),
        {"signal": "instruction", METADATA: cues.language},
        scope=Scope.WHEN_RELEVANT if trigger else Scope.ALWAYS,
    )
    return RuleMatch(1.3, candidate)


def _from_facts(turn: Turn, cues: LanguageCues, handled: set[str]) -> Iterator[RuleMatch]:
    for spoken in spoken_sentences(turn, cues):
        for fact in facts(spoken) if spoken.sentence.text not in handled else ():
            candidate = ExtractedLearning(
                Kind.PROFILE,
                "",
                fact.content,
                rationale="The user said so.",
                evidence=quotes(spoken.sentence),
                metadata={"signal": fact.cue.about, METADATA: cues.language},
                time_to_live=time_to_live(fact.cue.about, spoken.sentence.text),
                scope=Scope.ALWAYS if fact.cue.is_standing else Scope.WHEN_RELEVANT,
            )
            yield RuleMatch(0.9, candidate)


def _to_forget(turn: Turn, cues: LanguageCues) -> Iterator[RuleMatch]:
    for spoken in spoken_sentences(turn, cues):
        request = None if spoken.is_masked else cues["forget"].match(spoken.plain.rstrip(" .!?。！"))
        if request:
            start, end = request.span("what")
            subject = spoken.sentence.text[start:end].strip()
            for kind in (Kind.PROFILE, Kind.USER_PLAYBOOK):
                reason = "The user asked to forget it."
                evidence = (Quote(turn.id, spoken.sentence.text),)
                yield RuleMatch(
                    2.0, ExtractedLearning(kind, "", subject, rationale=reason, evidence=evidence, forget=True)
                )


def _request_before(turns: Sequence[Turn], place: int, cues: LanguageCues) -> Spoken | None:
    """What the user had asked for when they got the answer: the latest turn before that rejects none."""
    for turn in reversed(turns[:place]):
        if turn.role == "user" and not rejects_answer(turn, cues):
            spoken = [words for words in spoken_sentences(turn, cues) if not cues["small_talk"].match(words.plain)]
            questions = [words for words in spoken if words.is_question]
            if request := next(iter([*questions, *spoken]), None):
                return request
    return None
