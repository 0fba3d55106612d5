"""Playbooks from feedback: an answer that worked, a request made again, and what an expert's answer adds."""

from collections.abc import Sequence

from reflexio.language.words import content_words, figures, is_negative, overlap, words
from reflexio.learners.local.candidates import RuleMatch, playbook_match
from reflexio.learners.local.facts import facts
from reflexio.learners.local.instructions import rejects
from reflexio.learners.local.sentences import CUES, MOST_READ, Sentence, own_sentences, quotes, split_sentences
from reflexio.learners.local.triggers import STANDING, is_request, request_before, request_in, trigger_of
from reflexio.models.extraction import Quote, Turn
from reflexio.ports.embedding import Embedder

LONGEST_APPROACH = 400  # characters of an answer that worked
SAME_REQUEST = 0.8  # cosine from which two requests are the same
ALMOST_SAME = 0.65  # enough when the user says that they ask again
FEWEST_WORDS = 3
ALREADY_SAID = 0.72  # cosine from which two sentences say the same, unless figures or negation differ
SAID_IN_OTHER_WORDS = 0.85
MOSTLY_NEW = 0.6
MOST_NEW_WORDS = 0.34  # share of words that the agent did not use, up to which a sentence adds nothing
LONGEST_DIFFERENCE = 900  # characters of an expert's answer

_ADVICE = ("you can", "you could", "you need", "you should", "try", "could you", "please", "first", "to ")


def confirmation(turns: Sequence[Turn], place: int) -> RuleMatch | None:
    """A playbook from "that worked", with the answer that did and, if there was one, the answer that had not."""
    lines = own_sentences(turns[place])
    worked = (line for line in lines if CUES["worked"].search(line.own) and not CUES["not_yet"].search(line.own))
    confirmed = next(worked, None)
    answered = _last_answer(turns, place)
    if confirmed is None or answered is None:
        return None
    approach = _approach(turns[answered])
    request = request_before(turns, answered)
    if not approach or request is None:
        return None
    failed = _failed_answer(turns, answered)
    content = "Do what worked: " + " ".join(line.text for line in approach)
    rationale = "The user confirmed that it worked."
    if failed:
        content += f" Not what had failed before: {failed.text}"
        rationale = "The user confirmed that it worked after an earlier answer had failed."
    evidence = quotes(confirmed, *approach)
    weight = 1.1 if failed else 0.65
    return playbook_match(weight, content, trigger_of(request), rationale, evidence, signal="confirmation")


def _last_answer(turns: Sequence[Turn], place: int) -> int | None:
    places = range(place - 1, -1, -1)
    return next((at for at in places if turns[at].role == "agent" and turns[at].content.strip()), None)


def _approach(turn: Turn) -> list[Sentence]:
    """What an answer says to do, without courtesies: all of it if it is short, else the sentences with an action."""
    lines = [line for line in own_sentences(turn) if len(line.text.split()) > 3]
    lines = [line for line in lines if not CUES["courtesy_of_agent"].search(line.own)]
    actions = [line for line in lines if CUES["imperative"].match(line.own) or line.own.lower().startswith(_ADVICE)]
    if not actions:
        return []
    kept: list[Sentence] = []
    room = LONGEST_APPROACH
    for line in lines if sum(len(line.text) for line in lines) <= LONGEST_APPROACH else actions:
        if len(line.text) <= room:
            kept.append(line)
            room -= len(line.text)
    return kept


def _failed_answer(turns: Sequence[Turn], answered: int) -> Sentence | None:
    """The gist of the last answer before this one that the user rejected."""
    for at in range(answered - 1, 0, -1):
        if turns[at].role == "user" and rejects(turns[at]) and (before := _last_answer(turns, at)) is not None:
            return next(iter(_approach(turns[before])), None)
    return None


async def repeated_request(turns: Sequence[Turn], place: int, embedder: Embedder) -> RuleMatch | None:
    """A playbook from a request that resembles the one before the last answer: the answer did not meet it."""
    now = request_in(turns[place])
    before = _request_before_answer(turns, place)
    if now is None or before is None or len(content_words(now.text)) < FEWEST_WORDS:
        return None
    says_again = bool(CUES["again"].search(turns[place].content))
    is_same_form = says_again or now.is_question == before.is_question
    if CUES["another"].search(now.text) or not is_request(before) or not is_same_form or _says_otherwise(now, before):
        return None
    if not await _is_same_request(now.text, before.text, ALMOST_SAME if says_again else SAME_REQUEST, embedder):
        return None
    content = f"Answer exactly what is asked; a first answer missed it, and the user asked again: {now.text}"
    rationale = "The user had to repeat the request after the answer."
    return playbook_match(0.95, content, trigger_of(before), rationale, quotes(before, now), signal="repetition")


def _says_otherwise(now: Sentence, before: Sentence) -> bool:
    """A changed mind repeats the words with another value: "my budget is 300" after "my budget is 200"."""
    return next(facts(now), None) is not None or _differs(now.text, before.text)


async def _is_same_request(one: str, other: str, threshold: float, embedder: Embedder) -> bool:
    """Words decide the clear cases, which are most; embeddings cost more and decide the others."""
    ours, theirs = content_words(one), content_words(other)
    if ours == theirs or overlap(ours, theirs) < 0.5:
        return ours == theirs
    first, second = await embedder.embed([one, other])
    return float(first @ second) >= threshold


def _request_before_answer(turns: Sequence[Turn], place: int) -> Sentence | None:
    """The user's request before the answer to which this turn replies; None when there is no answer in between."""
    is_answered = False
    for turn in reversed(turns[:place]):
        if turn.role == "agent":
            is_answered = True
        elif turn.role == "user":
            return request_in(turn) if is_answered else None
    return None


async def expert_difference(turns: Sequence[Turn], place: int, embedder: Embedder) -> RuleMatch | None:
    """A playbook from the sentences of an expert's answer whose substance the agent's answer lacks."""
    turn = turns[place]
    points = await _added_points(turn, embedder)
    # What the expert asks in return belongs to this case.
    points = [point for point in points if not point.endswith("?")] or points
    if not points:
        return None
    request = request_before(turns, place)
    ended = (point if point.endswith((".", "!", "?")) else point.rstrip(",;:") + "." for point in points)
    return playbook_match(
        1.5,
        "Tell the user: " + " ".join(ended),
        trigger_of(request) if request else STANDING,
        f"An expert reviewed the answer; {len(points)} of its points were missing.",
        (*quotes(request), *(Quote(turn.id, point) for point in points)),
        signal="expert",
    )


async def _added_points(turn: Turn, embedder: Embedder) -> list[str]:
    answer = turn.content[:MOST_READ]
    known = content_words(answer)
    answered = _points(answer)
    new = [point for point in _points(turn.expert_content) if not _is_courtesy(point) and _has_news(point, answer)]
    if new and answered:
        vectors = await embedder.embed([*new, *answered])
        similarity = vectors[: len(new)] @ vectors[len(new) :].T
        # Short answers to one question are alike: a sentence of mostly new words must be very much alike to be known.
        shares = (_share_of_new(point, known) for point in new)
        thresholds = (ALREADY_SAID if share <= MOSTLY_NEW else SAID_IN_OTHER_WORDS for share in shares)
        new = [
            point
            for point, row, threshold in zip(new, similarity, thresholds, strict=True)
            if float(row.max()) < threshold or _differs(point, answered[int(row.argmax())])
        ]
    kept: list[str] = []
    room = LONGEST_DIFFERENCE
    for point in new:
        room -= len(point)
        if room < 0 and kept:
            break
        kept.append(point)
    return kept


def _points(text: str) -> list[str]:
    """Sentences, and the numbered steps inside them."""
    pieces = [piece.strip() for sentence in split_sentences(text) for piece in CUES["step"].split(sentence)]
    return [piece for piece in pieces if len(content_words(piece)) > 1]


def _is_courtesy(point: str) -> bool:
    return bool(CUES["courtesy_of_expert"].search(point)) and len(content_words(point)) < 8


def _share_of_new(point: str, known: frozenset[str]) -> float:
    point_words = content_words(point)
    return len(point_words - known) / len(point_words)


def _has_news(point: str, answer: str) -> bool:
    return _differs(point, answer) or _share_of_new(point, content_words(answer)) > MOST_NEW_WORDS


def _differs(point: str, text: str) -> bool:
    """Another figure, or yes against no."""
    return bool(figures(point) - figures(text)) or is_negative(words(point)) != is_negative(words(text))
