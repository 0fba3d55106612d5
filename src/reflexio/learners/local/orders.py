"""Corrections and instructions: what the user tells the agent to do otherwise."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reflexio.learners.local import order_cues as cues
from reflexio.learners.local.persons import of_the_user, to_the_agent
from reflexio.learners.local.sentences import MASK, Sentence, spoken
from reflexio.models.learned import Turn

_FOREIGN = re.compile(
    r"^(?:immer|nie|niemals|nicht|kein|keine|siempre|nunca|toujours|jamais|ne)\b|[äöüßñ¿¡éèàç]|\b(?:bitte|antworte|por favor|responde|réponds)\b",
    re.I,
)


@dataclass(frozen=True)
class Order:
    """An instruction in the user's sense. `trigger` is empty unless the order says itself when it holds."""

    weight: float
    content: str
    trigger: str
    rationale: str
    sentence: Sentence


def orders(turns: Sequence[Turn], place: int) -> Iterator[Order]:
    """What one turn of the user orders, given what went before."""
    rejected = False
    after_answer = any(turn.role == "agent" for turn in turns[:place])
    for sentence in spoken(turns[place]):
        rejected = rejected or (after_answer and bool(cues.REJECTING.match(sentence.own)))
        found = _order(sentence, rejected=rejected)
        if found:
            yield found


def rejects(turn: Turn) -> bool:
    return any(cues.REJECTING.match(each.own) or cues.FAILED.search(each.own) for each in spoken(turn))


def _order(sentence: Sentence, *, rejected: bool) -> Order | None:
    own, text = _without_lead_in(sentence)
    if sentence.is_question and not re.match(
        r"(?:can|could|would|will)\s+you\s+(?:please\s+)?(?:always|never|stop)\b", own, re.I
    ):
        return None
    if MASK in own or len(text.split()) < 2 or cues.FORGET.match(own) and not cues.ORDER.match(own):
        return None
    stands = bool(cues.STANDING.match(own) or cues.STANDING_AT_THE_END.search(own))
    own, text = _cut(own, text, cues.STANDING)
    told = cues.TOLD.match(own)
    is_negated = bool(told and (told.groupdict().get("not") or told.group().rstrip().lower().endswith("not")))
    if told:
        own, text = own[told.end() :], text[told.end() :]
        own, text = _cut(own, text, re.compile(r"^(?:not\s+)?to\s+", re.I)) if not is_negated else (own, text)
    content = _worded(own, text, rejected=rejected, stands=stands, told=bool(told))
    if not content:
        return None
    return _with_condition(
        "Do not " + content[:1].lower() + content[1:] if is_negated else content,
        sentence,
        rejected=rejected,
        stands=stands,
    )


def _worded(own: str, text: str, *, rejected: bool, stands: bool, told: bool) -> str:
    """The instruction, or nothing when the words are no order."""
    if cues.ORDER.match(own):
        return _foreign(text) or to_the_agent(text)
    if (rejected or stands or told) and cues.IMPERATIVE.match(own):
        return _foreign(text) or to_the_agent(text)
    if stands and _FOREIGN.search(own):
        return _foreign(text)
    if not (rejected or stands):
        return ""
    if cues.SHOULD.match(own):
        return to_the_agent(re.sub(r"^(?:it|that|this)\b", "The answer", text, flags=re.I))
    if meant := cues.MEANT.match(own):
        return "Take it as the user meant it: " + to_the_agent(text[meant.end() :])
    if cues.SHOULD_HAVE.match(own):
        return of_the_user(re.sub(r"^you\b", "The agent", text, flags=re.I)) + " Do so."
    if cues.NOT_BUT.match(own):
        return to_the_agent(re.sub(r"^(?:it|that|this)['’]s\b", "The answer is", text, flags=re.I))
    return ""


def _with_condition(content: str, sentence: Sentence, *, rejected: bool, stands: bool) -> Order:
    weight = 1.4 if rejected and stands else 1.3 if stands or cues.ORDER.match(content) else 1.2
    why = "The user rejected the answer and said how it should be." if rejected else "The user gave this instruction."
    trigger = ""
    if found := cues.CONDITION.match(content.rstrip(".")):
        when, then = found["when"] or found["when2"], found["then"] or found["then2"]
        trigger = of_the_user(
            re.sub(r"^(?:whenever|when|if|every\s+time|each\s+time)\s+", "", when, flags=re.I)
        ).rstrip(".")
        content = to_the_agent(then)
    return Order(weight, content, trigger, why, sentence)


def _without_lead_in(sentence: Sentence) -> tuple[str, str]:
    own, text = _cut(sentence.own, sentence.text, cues.LEAD_IN)
    return own, text


def _cut(own: str, text: str, beginning: re.Pattern[str]) -> tuple[str, str]:
    found = beginning.match(own)
    return (own[found.end() :], text[found.end() :]) if found else (own, text)


def _foreign(text: str) -> str:
    return f"Do as the user said: “{text.rstrip(' .!')}”." if _FOREIGN.search(text) else ""
