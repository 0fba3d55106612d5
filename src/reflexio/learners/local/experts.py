"""What an expert's answer adds to the agent's: the sentences whose substance the agent's answer lacks."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reflexio.learners.local.finding import Finding, quotes
from reflexio.learners.local.phrases import phrase
from reflexio.learners.local.sentences import MOST_READ, split
from reflexio.learners.local.triggers import request_before, trigger_of
from reflexio.learners.local.words import figures, is_negative, meaning
from reflexio.models.learned import Candidate, Quote, Turn
from reflexio.models.learning import Kind
from reflexio.ports.embedding import Embedder

SAID_ALREADY = 0.72  # cosine from which two sentences say the same, unless figures or negation differ
SAID_IN_OTHER_WORDS = 0.85
MOSTLY_NEW = 0.6
MOST_NEW_WORDS = 0.34  # share of words the agent did not use up to which a sentence adds nothing
LONGEST = 900

_COURTESY = phrase(
    r"\b(happy to help|glad to|let me know|feel free|hope (this|that) helps|thank you|thanks|sorry (to|for)|"
    r"apologi[sz]e|you're welcome|great question|of course|have a (great|nice|good)|i understand|don't hesitate|"
    r"anything else|sure thing|best regards|kind regards|dear \w+)\b",
)
_STEP = phrase(r"((?<=\s)|^)\(?\d{1,2}[.)] ")


async def expert_difference(turns: Sequence[Turn], place: int, embedder: Embedder) -> Finding | None:
    turn = turns[place]
    added = await _added(turn, embedder)
    if not added:
        return None
    request = request_before(turns, place)
    found = Candidate(
        Kind.USER_PLAYBOOK,
        "",
        "Include what an expert's answer has and the agent's lacked: " + " ".join(map(_closed, added)),
        trigger_of(request),
        f"An expert reviewed the answer; {len(added)} of its points were missing.",
        (*quotes(request), *(Quote(turn.id, each) for each in added)),
        {"signal": "expert"},
    )
    return Finding(1.5, found)


async def _added(turn: Turn, embedder: Embedder) -> list[str]:
    points = [each for each in _points(turn.expert_content) if not _is_courtesy(each)]
    answer = turn.content[:MOST_READ]
    said = _points(answer)
    known = meaning(answer)
    new = [each for each in points if _has_news(each, answer, known)]
    if new and said:
        vectors = await embedder.embed([*new, *said])
        nearest = _nearest(vectors[: len(new)], vectors[len(new) :])
        new = [
            each
            for each, (near, at) in zip(new, nearest, strict=True)
            if near < _bar(each, known) or _differs(each, said[at])
        ]
    return _within(new, LONGEST)


def _bar(point: str, known: frozenset[str]) -> float:
    """Short answers on one matter are alike; a sentence of mostly new words must be very much alike to be known."""
    return SAID_ALREADY if _share_of_new(point, known) <= MOSTLY_NEW else SAID_IN_OTHER_WORDS


def _share_of_new(point: str, known: frozenset[str]) -> float:
    words = meaning(point)
    return len(words - known) / len(words)


def _points(text: str) -> list[str]:
    """Sentences, and the numbered steps inside them."""
    pieces = [piece.strip() for each in split(text) for piece in _STEP.split(each)]
    return [piece for piece in pieces if len(meaning(piece)) > 1]


def _is_courtesy(point: str) -> bool:
    return bool(_COURTESY.search(point)) and len(meaning(point)) < 8


def _has_news(point: str, answer: str, known: frozenset[str]) -> bool:
    if figures(point) - figures(answer):
        return True
    return _share_of_new(point, known) > MOST_NEW_WORDS or is_negative(point) != is_negative(answer)


def _differs(point: str, said: str) -> bool:
    """Alike, and yet not the same: another figure, or yes against no."""
    return bool(figures(point) - figures(said)) or is_negative(point) != is_negative(said)


def _nearest(points: NDArray[np.float32], said: NDArray[np.float32]) -> list[tuple[float, int]]:
    likeness = points @ said.T
    return [(float(row.max()), int(row.argmax())) for row in likeness]


def _within(points: list[str], room: int) -> list[str]:
    kept: list[str] = []
    for point in points:
        room -= len(point)
        if room < 0 and kept:
            break
        kept.append(point)
    return kept


def _closed(point: str) -> str:
    return point if point.endswith((".", "!", "?")) else point.rstrip(",;:") + "."
