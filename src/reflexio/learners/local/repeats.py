"""A request made again: the answer in between did not meet it."""

from collections.abc import Sequence

from reflexio.learners.local.finding import Finding, quotes
from reflexio.learners.local.phrases import phrase
from reflexio.learners.local.sentences import Sentence
from reflexio.learners.local.triggers import is_request, request_in, trigger_of
from reflexio.learners.local.words import meaning, shared
from reflexio.models.learned import Candidate, Turn
from reflexio.models.learning import Kind
from reflexio.ports.embedding import Embedder

SAME_REQUEST = 0.8
ALMOST = 0.65  # enough when the user says that they ask again
FEWEST_WORDS = 3

_AGAIN = phrase(
    r"\b(again|i (asked|said|meant)|as i (asked|said)|my question (was|is)|once more|still|i repeat|noch einmal|"
    r"otra vez|encore une fois)\b",
)

_ANOTHER = phrase(r"\b(other|another|else|different|more|also|too|next|instead|additional)\b")


async def repeated(turns: Sequence[Turn], place: int, embedder: Embedder) -> Finding | None:
    """A playbook from a request that resembles the one before the last answer."""
    now = request_in(turns[place])
    before = _request_before_the_answer(turns, place)
    if now is None or before is None or len(meaning(now.text)) < FEWEST_WORDS or not _is_asking(now, before):
        return None
    floor = ALMOST if _AGAIN.search(turns[place].content) else SAME_REQUEST
    if not await _is_same(now.text, before.text, floor, embedder):
        return None
    content = f"Answer exactly what is asked; a first answer missed it, and the user asked again: {now.text}"
    found = Candidate(
        Kind.USER_PLAYBOOK,
        "",
        content,
        trigger_of(before),
        "The user had to repeat the request after the answer.",
        quotes(before, now),
        {"signal": "repetition"},
    )
    return Finding(0.95, found)


async def _is_same(one: str, other: str, floor: float, embedder: Embedder) -> bool:
    """Words decide the clear cases, which are most; meaning is dear and decides the others."""
    ours, theirs = meaning(one), meaning(other)
    if ours == theirs or shared(ours, theirs) < 0.5:
        return ours == theirs
    first, second = await embedder.embed([one, other])
    return float(first @ second) >= floor


def _request_before_the_answer(turns: Sequence[Turn], place: int) -> Sentence | None:
    """The user's turn before the answer to which this turn replies; nothing when no answer stands between."""
    answered = False
    for turn in reversed(turns[:place]):
        if turn.role == "agent":
            answered = True
        elif turn.role == "user":
            return request_in(turn) if answered else None
    return None


def _is_asking(now: Sentence, before: Sentence) -> bool:
    if _ANOTHER.search(now.text) or not is_request(before):
        return False
    return now.is_question == before.is_question or bool(_AGAIN.search(now.turn.content))
