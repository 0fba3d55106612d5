"""What users tell the agent to do, in other languages: standing orders, and corrections of an answer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reflexio.language.choices import chooses_for_good, switches_language
from reflexio.language.cues import LanguageCues
from reflexio.learners.local.languages.speech import Spoken, as_statement, spoken_sentences
from reflexio.models.extraction import Turn

_END_OF_ANSWER = 250  # characters in which an answer asks its question
_QUESTION_MARKS = ("?", "？")


@dataclass(frozen=True)
class Order:
    """An order. A standing one holds always, a correction where the request that was answered is made again."""

    content: str
    spoken: Spoken
    is_standing: bool


def orders(turns: Sequence[Turn], place: int, cues: LanguageCues) -> Iterator[Order]:
    """The orders in one turn of the user, given the turns before it."""
    answer = next((turn.content.rstrip() for turn in reversed(turns[:place]) if turn.role == "agent"), "")
    asks = any(mark in answer[-_END_OF_ANSWER:] for mark in _QUESTION_MARKS)
    rejects = refuses = False
    for spoken in spoken_sentences(turns[place], cues):
        if spoken.is_masked:
            continue
        is_no = bool(cues["plain_no"].match(spoken.plain))
        # "No, don't call me" answers the question whether to call.
        refuses = refuses or (asks and is_no)
        rejects = rejects or bool(answer and cues["rejection"].match(spoken.plain) and not refuses)
        if order := _order(spoken, cues, has_answer=bool(answer) and not asks, rejects=rejects, refuses=refuses):
            yield order


def rejects_answer(turn: Turn, cues: LanguageCues) -> bool:
    return any(cues["rejection"].match(spoken.plain) for spoken in spoken_sentences(turn, cues))


def _order(spoken: Spoken, cues: LanguageCues, *, has_answer: bool, rejects: bool, refuses: bool) -> Order | None:
    plain = spoken.plain
    lead = cues["lead_in"].match(plain)
    start = lead.end() if lead else 0
    core = plain[start:].rstrip(" .!?。！？")
    if switches_language(plain):
        return Order(as_statement(spoken.sentence.text), spoken, is_standing=True)
    if has_answer and cues["reproach"].match(core):
        return Order(cues.frame("said", spoken.sentence.text), spoken, is_standing=False)
    is_polite = bool(cues["polite_order"].match(core))
    if (spoken.is_question and not is_polite) or not core:
        return None
    is_order = is_polite or bool(cues["order"].match(core) or cues["order_at_end"].search(core))
    if cues["complaint"].search(core):
        return None
    has_condition = bool(cues["condition"].match(core))
    is_once = bool(cues["one_off"].search(core)) and not has_condition
    is_abiding = bool(cues["abiding"].search(core)) and not is_once
    is_at_hand = not is_abiding and bool(cues["at_hand"].search(core))
    is_about_answers = bool(cues["how_to_answer"].search(core)) and not is_once and not is_at_hand
    if chooses_for_good(core) and not (is_once or is_at_hand or rejects or refuses):
        return _written(spoken, start, is_standing=True)
    if is_about_answers and cues["bare_style"].match(core):
        return _written(spoken, start, is_standing=True)
    if cues["no_order"].match(core):
        return None
    is_never = bool(cues["abiding"].search(core))
    is_for_now = (is_once and not is_never) or bool(cues["momentary"].search(plain) or cues["now_only"].search(plain))
    if cues["prohibition"].match(core) and not is_for_now and not rejects and not refuses:
        return _written(spoken, start, is_standing=True)
    if is_about_answers and is_order:
        return _written(spoken, start, is_standing=True)
    is_corrected = rejects and (is_order or cues["wanted"].search(core) or cues["should"].search(core))
    if is_corrected or (has_answer and is_order and cues["first"].search(core)):
        return _written(spoken, start, is_standing=False)
    if is_abiding and (is_order or cues["should"].match(core) or cues["bare_standing"].match(core)):
        return _written(spoken, start, is_standing=True)
    if has_answer and (cues["wanted"].match(core) or cues["should_have"].search(core)):
        return _written(spoken, start, is_standing=False)
    return None


def _written(spoken: Spoken, start: int, *, is_standing: bool) -> Order:
    """The order in the user's words. Where they speak of themselves, a frame says who speaks."""
    cues = spoken.cues
    words = as_statement(spoken.rest(start))
    if cues["first_person"].search(spoken.plain[start:]):
        words = cues.frame("said", words)
    return Order(words, spoken, is_standing)
