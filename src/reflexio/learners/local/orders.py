"""Corrections and instructions: what the user tells the agent to do otherwise."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from reflexio.learners.local import order_cues as cues
from reflexio.learners.local.persons import of_the_user, to_the_agent
from reflexio.learners.local.sentences import MASK, Sentence, spoken
from reflexio.models.learned import Turn

QUESTION_AT_THE_END = 250


@dataclass(frozen=True)
class Order:
    """An instruction in the user's sense. `trigger` is empty unless the order says itself when it holds."""

    weight: float
    content: str
    trigger: str
    rationale: str
    sentence: Sentence


@dataclass(frozen=True)
class Words:
    """What is left of a sentence while its wrapping is taken off, and what the wrapping said."""

    own: str
    text: str
    rejected: bool = False  # the user turns an answer down
    stands: bool = False  # "from now on", "next time", "whenever"
    opened: bool = False  # it begins with that
    told: bool = False  # "I told you to", "you should"
    negated: bool = False  # "I asked you not to"
    trigger: str = ""

    def without(self, found: re.Match[str] | None) -> "Words":
        return replace(self, own=self.own[found.end() :], text=self.text[found.end() :]) if found else self

    def up_to(self, end: re.Pattern[str]) -> "Words":
        found = end.search(self.own, 1)
        return replace(self, own=self.own[: found.start()], text=self.text[: found.start()]) if found else self


def orders(turns: Sequence[Turn], place: int) -> Iterator[Order]:
    """What one turn of the user orders, given what went before."""
    answer = next((turn.content.rstrip() for turn in reversed(turns[:place]) if turn.role == "agent"), "")
    asked = "?" in answer[-QUESTION_AT_THE_END:]
    rejected = refused = False
    for sentence in spoken(turns[place]):
        says_no = bool(cues.PLAIN_NO.match(sentence.own))
        refused = refused or (asked and says_no)
        rejected = rejected or bool(answer and cues.REJECTING.match(sentence.own) and not (asked and says_no))
        found = _order(sentence, rejected=rejected)
        is_momentary = refused or (not answer and found and cues.TASK.match(found.content))
        # "No, don't book it" answers the question; "No, never book it" is meant for the next time, too.
        if found and (found.trigger or cues.ABIDING.search(sentence.own) or not is_momentary):
            yield found


def rejects(turn: Turn) -> bool:
    return any(cues.REJECTING.match(each.own) or cues.FAILED.search(each.own) for each in spoken(turn))


def _order(sentence: Sentence, *, rejected: bool) -> Order | None:
    if MASK in sentence.own or (sentence.is_question and not cues.POLITE_ORDER.search(sentence.own)):
        return None
    words = _unwrapped(Words(sentence.own.rstrip(" .!?"), sentence.text.rstrip(" .!?"), rejected)).up_to(cues.REASON)
    content = "" if len(words.own.split()) < 2 else _worded(words)
    if not content:
        return None
    if words.negated:
        content = f"Do not {content[:1].lower()}{content[1:]}"
    why = "The user rejected the answer and said how it should be." if rejected else "The user gave this instruction."
    return Order(_weight(words), content, words.trigger, why, sentence)


def _unwrapped(words: Words) -> Words:
    words = words.without(cues.LEAD_IN.match(words.own))
    stands = cues.STANDING.match(words.own)
    at_the_end = cues.STANDING_LATER.search(words.own)
    words = replace(words.without(stands), stands=bool(stands or at_the_end), opened=bool(stands))
    words = _conditional(words)
    told = cues.TOLD.match(words.own) or (_is_meant(words) and cues.ADVISED.match(words.own)) or None
    return replace(
        words.without(told), told=bool(told), negated=bool(told and told.group().rstrip().lower().endswith(" not to"))
    )


def _is_meant(words: Words) -> bool:
    """Whether more is ordered than a task of the moment."""
    return words.rejected or words.stands or bool(cues.ABIDING.search(words.own))


def _conditional(words: Words) -> Words:
    """ "When I ask for code, …" says itself when it holds, and so holds from now on."""
    found = cues.CONDITION_FIRST.match(words.own) or cues.CONDITION_LAST.match(words.own)
    if not found:
        return words
    if found.re is cues.CONDITION_LAST and not (words.stands or cues.ORDER.match(found["then"])):
        return words
    if not (cues.ORDER.match(found["then"]) or cues.IMPERATIVE.match(found["then"]) or cues.TOLD.match(found["then"])):
        return words
    (start, end), (first, last) = found.span("when"), found.span("then")
    trigger = of_the_user(words.text[start:end]).rstrip(".")
    return replace(words, own=words.own[first:last], text=words.text[first:last], stands=True, trigger=trigger)


def _worded(words: Words) -> str:
    """The instruction, or nothing when the words are no order."""
    own, text = words.own, words.text
    if cues.ENCOURAGING.search(own):
        return ""
    is_order = cues.ORDER.match(own) or ((words.rejected or words.stands or words.told) and cues.IMPERATIVE.match(own))
    if is_order or (words.opened and not cues.STATEMENT.match(own)):
        return f"Do as the user said: “{text}”." if cues.FOREIGN.search(text) else to_the_agent(text)
    if not (words.rejected or words.stands):
        return ""
    if cues.SHOULD.match(own):
        return to_the_agent(re.sub(r"^(?:it|that|this)\b", "The answer", text, flags=re.I))
    if meant := cues.MEANT.match(own):
        return "Take it as the user meant it: " + to_the_agent(text[meant.end() :])
    for reproach, instead in cues.REPROACHES:
        if blamed := reproach.match(own):
            return to_the_agent(instead + text[blamed.end() :])
    if cues.X_NOT_Y.match(own):
        return to_the_agent(f"the answer should be {text}")
    if cues.NOT_BUT.match(own):
        return to_the_agent(re.sub(r"^(?:it|that|this)['’]s\b", "The answer is", text, flags=re.I))
    return ""


def _weight(words: Words) -> float:
    if words.rejected and words.stands:
        return 1.4
    return 1.3 if words.stands or cues.ORDER.match(words.own) else 1.2
