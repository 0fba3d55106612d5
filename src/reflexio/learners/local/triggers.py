"""When a learning applies: the request of the same session that it goes back to, in the third person and without what
belongs to that one case. Standing orders have no trigger."""

import re
from collections.abc import Sequence

from reflexio.language.words import content_words
from reflexio.learners.local.case_details import generalised
from reflexio.learners.local.grammar import as_act_of_agent, in_third_person, third_person_pronouns
from reflexio.learners.local.sentences import CUES, Sentence, cue_pairs, own_sentences
from reflexio.models.extraction import Turn

LONGEST = 220
_LONGEST_CASE = 16  # words
_DIRECT_FORMS = 5  # of the forms of a request
STANDING = ""
"""The trigger of what holds whatever is asked."""


def request_before(turns: Sequence[Turn], place: int) -> Sentence | None:
    """What the user had asked for when they were answered: the latest request before a turn that is no correction."""
    sentences = [sentence for turn in reversed(turns[:place]) if turn.role == "user" and (sentence := request_in(turn))]
    requests = [sentence for sentence in sentences if is_request(sentence)]
    for candidates in (requests, sentences):
        if request := next((sentence for sentence in candidates if not _is_objection(sentence)), None):
            return request
    return sentences[-1] if sentences else None


def request_in(turn: Turn) -> Sentence | None:
    """The sentence of a turn that asks for something: a question first, else a need, else any sentence."""
    sentences = [sentence for sentence in own_sentences(turn) if not CUES["small_talk"].match(sentence.own)]
    sentences = [
        sentence for sentence in sentences if trigger_of(sentence) and not CUES["identifier"].search(sentence.own)
    ]
    for is_asking in (_is_direct, _is_need, lambda sentence: len(sentence.text.split()) > 2):
        if request := next((sentence for sentence in sentences if is_asking(sentence)), None):
            return request
    return None


def trigger_of(request: Sentence) -> str:
    """A request as a trigger, in the third person; empty when it does not say what is asked for."""
    text = CUES["emoticon"].sub("", CUES["greeting"].sub("", request.text)).rstrip(" ?.!…")[:LONGEST]
    if CUES["no_request"].match(text):
        return ""
    text = generalised(text)
    if not content_words(text) - content_words(" ".join(CUES.lists["says_nothing"])):
        return ""
    for form, template in cue_pairs("requests"):
        if match := form.match(text):
            return "The user " + template.format(_uncapitalised(third_person_pronouns(match["what"])))
    if CUES["need"].match(text) or re.match(r"(I|my|we)\b", text, re.I):
        return in_third_person(text).rstrip(".")
    if _begins_with_verb(text):
        return f"The user asks to {_uncapitalised(third_person_pronouns(text))}"
    return f"The user {'asks' if request.is_question else 'says'}: {third_person_pronouns(text)}"


def case_of(condition: str) -> str:
    """The condition of an instruction as its trigger: "you book a flight" becomes "The agent books a flight"."""
    if CUES["agent_does"].match(condition):
        return generalised(as_act_of_agent(condition))
    return generalised(in_third_person(re.sub(r"^they\b", "people", condition, flags=re.I)).rstrip("."))


def own_case(instruction: str) -> str:
    """The case that an instruction names itself: what the agent is about to do, or must not do without more."""
    text = instruction.rstrip(".")
    act = CUES["not_without"].match(text) or CUES["before_doing"].search(text)
    if act is None or len(act["act"].split()) > _LONGEST_CASE or CUES["of_something_named_before"].search(act["act"]):
        return ""
    case = as_act_of_agent(act["act"])
    return generalised(case) if content_words(case) - content_words(" ".join(CUES.lists["says_nothing"])) else ""


def has_content(instruction: str) -> bool:
    """Whether an instruction says what to do, and not only "do it like this every time"."""
    return bool(content_words(instruction) - content_words(" ".join(CUES.lists["says_nothing"])))


def belongs_to(content: str, turns: Sequence[Turn], place: int, request: Sentence) -> bool:
    """Whether an instruction speaks of the matter of a request or of the answer to it, by the words they share."""
    if CUES["of_this_matter"].search(content):
        return True
    answer = next((turn.content for turn in reversed(turns[:place]) if turn.role == "agent"), "")
    words = content_words(content)
    return bool(words & content_words(request.text) or words & content_words(answer[:2_000]))


def is_request(sentence: Sentence) -> bool:
    return _is_direct(sentence) or _is_need(sentence)


def _is_direct(sentence: Sentence) -> bool:
    core = CUES["greeting"].sub("", sentence.own)
    return (
        sentence.is_question
        or any(form.match(core) for form, _ in cue_pairs("requests")[:_DIRECT_FORMS])
        or _begins_with_verb(core)
    )


def _is_need(sentence: Sentence) -> bool:
    return bool(CUES["need"].match(CUES["greeting"].sub("", sentence.own)))


def _begins_with_verb(text: str) -> bool:
    return bool(CUES["verb"].match(text)) and not CUES["order"].match(text)


def _uncapitalised(text: str) -> str:
    return text[:1].lower() + text[1:]


def _is_objection(sentence: Sentence) -> bool:
    own = sentence.own
    if CUES["rejection"].match(own) or CUES["failed"].search(own):
        return not sentence.is_question
    return bool(CUES["standing"].match(own) or CUES["order"].match(CUES["lead_in"].sub("", own)))
