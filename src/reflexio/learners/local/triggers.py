"""When a learning applies: the request that it goes back to, in the third person."""

import re
from collections.abc import Sequence

from reflexio.language.words import phrase
from reflexio.learners.local.instructions import FAILED, LEAD_IN, ORDER, REJECTING, SMALL_TALK, STANDING
from reflexio.learners.local.sentences import Sentence, in_third_person, own_sentences, third_person_pronouns
from reflexio.models.extraction import Turn

ANYTHING = "The user asks for anything"
LONGEST = 220

_GREETING = phrase(
    r"^((hi|hello|hey|good (morning|evening|afternoon)|thanks|thank you|great|ok(ay)?|so|and|also|well|yes|sure|"
    r"perfect)( there| so much| again)?[\s,.!–—-]+)+",
)
_FORMS = (
    (phrase(r"^how (do|can|could|should|would|might) (i|we|you|one) (?P<what>.+)", re.S), "asks how to {}"),
    (phrase(r"^(can|could|would|will) you (please |also )*(?P<what>.+)", re.S), "asks to {}"),
    (phrase(r"^(please|pls) (?P<what>.+)", re.S), "asks to {}"),
    (phrase(r"^(can|could|may) (i|we) (please )?(?P<what>.+)", re.S), "asks whether they can {}"),
    (phrase(r"^(?P<what>(what|where|when|why|who|which|how|whose)\b.+)", re.S), "asks: {}"),
    (phrase(r"^(?P<what>(is|are|do|does|did|was|were|has|have|should|would|will|any)\b.+)", re.S), "asks: {}"),
)
_NEED = phrase(
    r"^(i (need|want|would like|have (an?|this)\s|can't|cannot|tried)|i'd (like|love)|i'm (trying|looking|working|"
    r"getting|having|planning)|my \w+|we need|help\b|it says)",
)
_VERB = phrase(
    r"^(write|give|show|tell|explain|find|list|make|create|draft|book|order|schedule|send|fix|help|suggest|"
    r"recommend|plan|build|run|translate|summari[sz]e|compare|convert|calculate|generate|design|review|check|cancel|"
    r"change|update|set|open|search|look|add|remove|refund|track|compute|sort|plot|describe|prepare|format|refactor|"
    r"debug|deploy|install|analy[sz]e|name|rename|count|estimate|remind|call|get|pull|fetch|export|import|print|draw|"
    r"outline|proofread|rewrite|read|reserve|what's|whats)\b",
)


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
    sentences = [sentence for sentence in own_sentences(turn) if not SMALL_TALK.match(sentence.own)]
    for is_asking in (_is_direct, _is_need, lambda sentence: len(sentence.text.split()) > 2):
        if request := next((sentence for sentence in sentences if is_asking(sentence)), None):
            return request
    return None


def trigger_of(request: Sentence | None) -> str:
    """A request as a trigger, in the third person.

    >>> trigger_of(None)
    'The user asks for anything'
    """
    if request is None:
        return ANYTHING
    text = _GREETING.sub("", request.text).rstrip(" ?.!…")[:LONGEST]
    for form, template in _FORMS:
        if match := form.match(text):
            return "The user " + template.format(_uncapitalised(third_person_pronouns(match["what"])))
    if _NEED.match(text) or re.match(r"(I|my|we)\b", text):
        return in_third_person(re.sub(r"^we\b", "I", text, flags=re.I)).rstrip(".")
    if _begins_with_verb(text):
        return f"The user asks to {_uncapitalised(third_person_pronouns(text))}"
    return f"The user {'asks' if request.is_question else 'says'}: {third_person_pronouns(text)}"


def is_request(sentence: Sentence) -> bool:
    return _is_direct(sentence) or _is_need(sentence)


def _is_direct(sentence: Sentence) -> bool:
    core = _GREETING.sub("", sentence.own)
    return sentence.is_question or any(form.match(core) for form, _ in _FORMS[:4]) or _begins_with_verb(core)


def _is_need(sentence: Sentence) -> bool:
    return bool(_NEED.match(_GREETING.sub("", sentence.own)))


def _begins_with_verb(text: str) -> bool:
    return bool(_VERB.match(text)) and not ORDER.match(text)


def _uncapitalised(text: str) -> str:
    return text[:1].lower() + text[1:]


def _is_objection(sentence: Sentence) -> bool:
    own = sentence.own
    if REJECTING.match(own) or FAILED.search(own):
        return not sentence.is_question
    return bool(STANDING.match(own) or ORDER.match(LEAD_IN.sub("", own)))
