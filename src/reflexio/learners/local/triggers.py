"""When a learning applies: the request it goes back to, told of the user so that it stands by itself."""

import re
from collections.abc import Sequence

from reflexio.learners.local.order_cues import FAILED, LEAD_IN, ORDER, REJECTING, SMALL_TALK, STANDING
from reflexio.learners.local.persons import of_the_user, theirs
from reflexio.learners.local.sentences import Sentence, spoken
from reflexio.models.learned import Turn

ANYTHING = "The user asks for anything"
LONGEST = 220

_GREETING = re.compile(
    r"^(?:(?:hi|hello|hey|good\s+(?:morning|evening|afternoon)|thanks|thank\s+you|great|ok(?:ay)?|so|and|also|well|yes|sure|perfect)"
    r"(?:\s+there|\s+so\s+much|\s+again)?[\s,.!–—-]+)+",
    re.I,
)
_FORMS = (
    (
        re.compile(r"^how\s+(?:do|can|could|should|would|might)\s+(?:i|we|you|one)\s+(.+)", re.I | re.S),
        "asks how to {}",
    ),
    (re.compile(r"^(?:can|could|would|will)\s+you\s+(?:please\s+|also\s+)*(.+)", re.I | re.S), "asks to {}"),
    (re.compile(r"^(?:please|pls)\s+(.+)", re.I | re.S), "asks to {}"),
    (re.compile(r"^(?:can|could|may)\s+(?:i|we)\s+(?:please\s+)?(.+)", re.I | re.S), "asks whether they can {}"),
    (re.compile(r"^((?:what|where|when|why|who|which|how|whose)\b.+)", re.I | re.S), "asks: {}"),
    (re.compile(r"^((?:is|are|do|does|did|was|were|has|have|should|would|will|any)\b.+)", re.I | re.S), "asks: {}"),
)
_ASKING = re.compile(
    r"^(?:i\s+(?:need|want|would\s+like|have\s+(?:an?|this)\s|can['’]t|cannot|tried)|i['’]d\s+(?:like|love)|i['’]m\s+(?:trying|looking|working|getting|"
    r"having|planning)|my\s+\w+|we\s+need|help\b|it\s+says)",
    re.I,
)


def request_before(turns: Sequence[Turn], place: int) -> Sentence | None:
    """What the user had asked for when they were answered: the latest request before a turn that is no correction."""
    fallback: Sentence | None = None
    for turn in reversed(turns[:place]):
        if turn.role != "user":
            continue
        asked = request_in(turn)
        if asked and not _is_objection(asked):
            return asked
        fallback = asked or fallback
    return fallback


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
            return "The user " + told.format(_lower(theirs(found[1])))
    if _ASKING.match(text) or re.match(r"(?:I|my|we)\b", text):
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


_VERBS = re.compile(
    r"^(?:write|give|show|tell|explain|find|list|make|create|draft|book|order|schedule|send|fix|help|suggest|recommend|plan|build|run|"
    r"translate|summari[sz]e|compare|convert|calculate|generate|design|review|check|cancel|change|update|set|open|search|look|add|"
    r"remove|refund|track|compute|sort|plot|describe|prepare|format|refactor|debug|deploy|install|analy[sz]e|name|rename|count|"
    r"estimate|remind|call|get|pull|fetch|export|import|print|draw|outline|proofread|rewrite|read|reserve|what's|whats)\b",
    re.I,
)
