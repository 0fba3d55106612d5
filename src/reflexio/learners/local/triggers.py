"""When a learning applies: the request it goes back to, told of the user so that it stands by itself."""

import re
from collections.abc import Sequence

from reflexio.learners.local.order_cues import FAILED, LEAD_IN, ORDER, REJECTING, SMALL_TALK, STANDING
from reflexio.learners.local.persons import of_the_user, theirs
from reflexio.learners.local.phrases import phrase
from reflexio.learners.local.sentences import Sentence, spoken
from reflexio.models.learned import Turn

ANYTHING = "The user asks for anything"
LONGEST = 220

_GREETING = phrase(
    r"^((hi|hello|hey|good (morning|evening|afternoon)|thanks|thank you|great|ok(ay)?|so|and|also|well|yes|sure|"
    r"perfect)( there| so much| again)?[\s,.!–—-]+)+",
)
_FORMS = (
    (
        phrase(r"^how (do|can|could|should|would|might) (i|we|you|one) (?P<what>.+)", re.S),
        "asks how to {}",
    ),
    (phrase(r"^(can|could|would|will) you (please |also )*(?P<what>.+)", re.S), "asks to {}"),
    (phrase(r"^(please|pls) (?P<what>.+)", re.S), "asks to {}"),
    (phrase(r"^(can|could|may) (i|we) (please )?(?P<what>.+)", re.S), "asks whether they can {}"),
    (phrase(r"^(?P<what>(what|where|when|why|who|which|how|whose)\b.+)", re.S), "asks: {}"),
    (phrase(r"^(?P<what>(is|are|do|does|did|was|were|has|have|should|would|will|any)\b.+)", re.S), "asks: {}"),
)
_ASKING = phrase(
    r"^(i (need|want|would like|have (an?|this)\s|can't|cannot|tried)|i'd (like|love)|i'm (trying|looking|working|"
    r"getting|having|planning)|my \w+|we need|help\b|it says)",
)


def request_before(turns: Sequence[Turn], place: int) -> Sentence | None:
    """What the user had asked for when they were answered: the latest request before a turn that is no correction."""
    said = [asked for turn in reversed(turns[:place]) if turn.role == "user" and (asked := request_in(turn))]
    asking = [each for each in said if is_request(each)]
    for choice in (asking, said):
        if found := next((each for each in choice if not _is_objection(each)), None):
            return found
    return said[-1] if said else None


def request_in(turn: Turn) -> Sentence | None:
    """The sentence of a turn that asks for something: a question first, else a need, else what is said."""
    said = [each for each in spoken(turn) if not SMALL_TALK.match(each.own)]
    for is_asking in (_is_direct, lambda each: bool(_ASKING.match(_core(each.own)))):
        if found := next((each for each in said if is_asking(each)), None):
            return found
    return next((each for each in said if len(each.text.split()) > 2), None)


def trigger_of(request: Sentence | None) -> str:
    """>>> trigger_of(None)
    'The user asks for anything'
    """
    if request is None:
        return ANYTHING
    text = _core(request.text).rstrip(" ?.!…")[:LONGEST]
    for form, told in _FORMS:
        if found := form.match(text):
            return "The user " + told.format(_lower(theirs(found["what"])))
    if _ASKING.match(text) or re.match(r"(I|my|we)\b", text):
        return of_the_user(re.sub(r"^we\b", "I", text, flags=re.I)).rstrip(".")
    if _begins_with_a_verb(text):
        return f"The user asks to {_lower(theirs(text))}"
    return f"The user {'asks' if request.is_question else 'says'}: {theirs(text)}"


def is_request(sentence: Sentence) -> bool:
    return _is_direct(sentence) or bool(_ASKING.match(_core(sentence.own)))


def _is_direct(sentence: Sentence) -> bool:
    core = _core(sentence.own)
    return sentence.is_question or any(form.match(core) for form, _ in _FORMS[:4]) or _begins_with_a_verb(core)


def _begins_with_a_verb(text: str) -> bool:
    return bool(_VERBS.match(text)) and not ORDER.match(text)


def _core(text: str) -> str:
    return _GREETING.sub("", text)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _is_objection(sentence: Sentence) -> bool:
    own = sentence.own
    if REJECTING.match(own) or FAILED.search(own):
        return not sentence.is_question
    return bool(STANDING.match(own) or ORDER.match(LEAD_IN.sub("", own)))


_VERBS = phrase(
    r"^(write|give|show|tell|explain|find|list|make|create|draft|book|order|schedule|send|fix|help|suggest|"
    r"recommend|plan|build|run|translate|summari[sz]e|compare|convert|calculate|generate|design|review|check|cancel|"
    r"change|update|set|open|search|look|add|remove|refund|track|compute|sort|plot|describe|prepare|format|refactor|"
    r"debug|deploy|install|analy[sz]e|name|rename|count|estimate|remind|call|get|pull|fetch|export|import|print|draw|"
    r"outline|proofread|rewrite|read|reserve|what's|whats)\b",
)
