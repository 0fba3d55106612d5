"""What the user confirmed: the answer that worked, above all when others had failed before it."""

from collections.abc import Sequence

from reflexio.learners.local.finding import Finding, quotes
from reflexio.learners.local.order_cues import IMPERATIVE
from reflexio.learners.local.orders import rejects
from reflexio.learners.local.phrases import phrase
from reflexio.learners.local.sentences import Sentence, spoken
from reflexio.learners.local.triggers import request_before, trigger_of
from reflexio.models.learned import Candidate, Turn
from reflexio.models.learning import Kind

LONGEST = 400
_ADVICE = ("you can", "you could", "you need", "you should", "try", "could you", "please", "first", "to ")
WORKED = phrase(
    r"\b((that|this|it|which|the \w+( \w+)?) (finally |really |actually |totally |now |just )?"
    r"(worked|works now|did (it|the trick)|does the trick|fixed (it|the|that|my)|solved (it|the|that|my))|"
    r"it (finally |now )?works|(problem|issue) (is )?solved|^found it(?=\s*[.!,]|\s*$)|working now|"
    r"it's (fixed|working|solved)|that's exactly what i (needed|wanted|meant|was looking for)|"
    r"(das|jetzt) (hat )?(geklappt|funktioniert|geht es)|(ya )?funcion[aó]|ça marche|ça a marché)(?!\w)"
    r"(?! (for (a|the|\d)|until|fine before|but|like|out|on me))",
)
"""The user says that it worked: an outcome, not a courtesy."""
NOT_YET = phrase(r"\b(if|whether|hope|unless|until|doesn't|didn't|not|never|almost|before|used to|how it)\b|\?")
_COURTESY = phrase(
    r"\b(take your time|let me know|feel free|(could|can|would) you (please )?(provide|confirm|share|tell|give)|"
    r"please (provide|confirm|share|tell|hold|wait|let)|i'll be ready|we can proceed)\b",
)


def confirmation(turns: Sequence[Turn], place: int) -> Finding | None:
    """A playbook from "that worked", with the answer that did and, if there was one, the answer that had not."""
    said = next(
        (each for each in spoken(turns[place]) if WORKED.search(each.own) and not NOT_YET.search(each.own)), None
    )
    answered = _last_answer(turns, place)
    if said is None or answered is None:
        return None
    approach = _approach(turns[answered])
    request = request_before(turns, answered)
    if not approach or request is None:
        return None
    failed = _failed(turns, answered)
    content = "Do what worked: " + " ".join(each.text for each in approach)
    if failed:
        content += f" Not what had failed before: {failed.text}"
    why = "The user confirmed that it worked" + (" after an earlier answer had failed." if failed else ".")
    found = Candidate(
        Kind.USER_PLAYBOOK, "", content, trigger_of(request), why, quotes(said, *approach), {"signal": "confirmation"}
    )
    return Finding(1.1 if failed else 0.65, found)


def _last_answer(turns: Sequence[Turn], place: int) -> int | None:
    return next(
        (at for at in range(place - 1, -1, -1) if turns[at].role == "agent" and turns[at].content.strip()), None
    )


def _approach(turn: Turn) -> list[Sentence]:
    """What an answer says to do, without courtesies: all of it if it is short, else the sentences that tell to act."""
    said = [each for each in spoken(turn) if len(each.text.split()) > 3 and not _COURTESY.search(each.own)]
    doing = [each for each in said if IMPERATIVE.match(each.own) or each.own.lower().startswith(_ADVICE)]
    if not doing:
        return []
    kept: list[Sentence] = []
    for each in said if sum(len(one.text) for one in said) <= LONGEST else doing:
        if sum(len(one.text) for one in kept) + len(each.text) <= LONGEST:
            kept.append(each)
    return kept


def _failed(turns: Sequence[Turn], answered: int) -> Sentence | None:
    """The gist of the last answer before this one that the user turned down."""
    for at in range(answered - 1, 0, -1):
        if turns[at].role == "user" and rejects(turns[at]) and (before := _last_answer(turns, at)) is not None:
            return next(iter(_approach(turns[before])), None)
    return None
