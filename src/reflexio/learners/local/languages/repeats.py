"""A request made again after the answer, in other languages: the answer did not meet it."""

from collections.abc import Sequence

from reflexio.language.cues import LanguageCues, cues_of
from reflexio.learners.local.candidates import RuleMatch, playbook_match
from reflexio.learners.local.languages.changes import METADATA, words_of
from reflexio.learners.local.languages.speech import Spoken, spoken_sentences, without_case
from reflexio.learners.local.sentences import quotes
from reflexio.models.extraction import Turn
from reflexio.ports.embedding import Embedder

SAME_REQUEST, ALMOST_SAME = 0.85, 0.7  # cosine; the lower one when the user says that they ask again
FEWEST_WORDS = 3
SHARED = 0.5  # of the words, by Dice, before meaning is asked


async def repeated_request(language: str, turns: Sequence[Turn], place: int, embedder: Embedder) -> RuleMatch | None:
    cues = cues_of(language)
    now, before = _request_in(turns[place], cues), _request_before_answer(turns, place, cues)
    if now is None or before is None or cues["another"].search(now.plain) or now.is_question != before.is_question:
        return None
    says_again = bool(cues["again"].search(now.plain))
    if not await _is_same(now, before, ALMOST_SAME if says_again else SAME_REQUEST, embedder):
        return None
    said = cues.frame("said", without_case(before.sentence.text))
    content = cues.frame("repeated", now.sentence.text)
    reason = "The user had to repeat the request after the answer."
    evidence = quotes(before.sentence, now.sentence)
    return playbook_match(0.95, content, said, reason, evidence, **{"signal": "repetition", METADATA: language})


async def _is_same(now: Spoken, before: Spoken, threshold: float, embedder: Embedder) -> bool:
    ours, theirs = (words_of(spoken.plain, spoken.cues) for spoken in (now, before))
    if min(len(ours), len(theirs)) < FEWEST_WORDS:
        return False
    shared = 2 * len(ours & theirs) / (len(ours) + len(theirs))
    if ours == theirs or shared < SHARED:
        return ours == theirs
    first, second = await embedder.embed([now.sentence.text, before.sentence.text])
    return float(first @ second) >= threshold


def _request_in(turn: Turn, cues: LanguageCues) -> Spoken | None:
    spoken = [words for words in spoken_sentences(turn, cues) if not words.is_masked]
    requests = [words for words in spoken if not cues["small_talk"].match(words.plain)]
    return next((words for words in requests if words.is_question), requests[0] if requests else None)


def _request_before_answer(turns: Sequence[Turn], place: int, cues: LanguageCues) -> Spoken | None:
    is_answered = False
    for turn in reversed(turns[:place]):
        if turn.role == "agent":
            is_answered = True
        elif turn.role == "user":
            return _request_in(turn, cues) if is_answered else None
    return None
