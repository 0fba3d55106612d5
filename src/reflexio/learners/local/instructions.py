"""Instructions: what users tell the agent to do differently from now on, and what they ask it to forget.

Plain orders are read here with the cues of `cues.toml`, other forms in `corrections`. What an instruction applies to is
decided in `triggers`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from reflexio.language.words import content_words
from reflexio.learners.local.case_details import without_identifiers
from reflexio.learners.local.corrections import correction
from reflexio.learners.local.grammar import as_instruction, in_third_person, third_person_pronouns
from reflexio.learners.local.sentences import CUES, MASK, Sentence, cue_pairs, own_sentences
from reflexio.learners.local.triggers import (
    STANDING,
    belongs_to,
    case_of,
    has_content,
    is_request,
    own_case,
    request_before,
    trigger_of,
)
from reflexio.models.extraction import EVERYTHING, Turn

_END_OF_ANSWER = 250  # characters in which an answer asks its question
_LONGEST_FORM = 240  # characters of a sentence that is read for other forms than an order
_EVER_LAST = re.compile(r"((?!Always|Never).+?),? always\.")
_MOST_PARTS = 6  # of a sentence that are read alone


@dataclass(frozen=True)
class Instruction:
    """What the user wants. `trigger` is empty unless the instruction names its own condition, then it holds always.

    `is_standing`: it holds from now on. `is_permission`: it only takes back what was asked for before.
    """

    weight: float
    content: str
    trigger: str
    rationale: str
    sentence: Sentence
    is_rejection: bool = False
    is_standing: bool = False
    is_permission: bool = False


@dataclass(frozen=True)
class Clause:
    """What is left of a sentence while its introduction is removed, and what the introduction said."""

    own: str
    text: str
    is_rejection: bool = False  # the user rejects an answer
    is_standing: bool = False  # "from now on", "next time", "whenever"
    begins_standing: bool = False  # it begins with these words
    is_reminder: bool = False  # "I told you to", "you should"
    is_negated: bool = False  # "I asked you not to"
    trigger: str = ""

    def after(self, match: re.Match[str] | None) -> "Clause":
        return replace(self, own=self.own[match.end() :], text=self.text[match.end() :]) if match else self

    def without_reason(self) -> "Clause":
        reason = CUES["reason"].search(self.own, 1)
        return replace(self, own=self.own[: reason.start()], text=self.text[: reason.start()]) if reason else self


def instructions(turns: Sequence[Turn], place: int) -> Iterator[Instruction]:
    """The instructions in one turn of the user, given the turns before it."""
    answer = answer_before(turns, place)
    has_question = asks_something(answer)
    is_rejection = is_refusal = False
    for sentence in own_sentences(turns[place]):
        says_no = bool(CUES["plain_no"].match(sentence.own))
        is_refusal = is_refusal or (has_question and says_no)
        rejects_answer = answer and CUES["rejection"].match(sentence.own) and not (has_question and says_no)
        is_rejection = is_rejection or bool(rejects_answer)
        instruction = _instruction(sentence, is_rejection=is_rejection)
        is_momentary = is_refusal or (not answer and instruction and CUES["task"].match(instruction.content))
        # "No, don't book it" answers the question; "No, never book it" is meant for the next time, too.
        if instruction and (instruction.trigger or CUES["abiding"].search(sentence.own) or not is_momentary):
            yield instruction
        elif not instruction and not is_refusal and (other := _other_form(sentence, answer)):
            is_rejection = is_rejection or not other.is_permission
            yield other


def answer_before(turns: Sequence[Turn], place: int) -> str:
    """The last answer of the agent before a turn."""
    return next((turn.content.rstrip() for turn in reversed(turns[:place]) if turn.role == "agent"), "")


def asks_something(answer: str) -> bool:
    return "?" in answer[-_END_OF_ANSWER:]


def trigger_for(turns: Sequence[Turn], place: int, order: Instruction) -> tuple[str, Sentence | None] | None:
    """The trigger of an instruction, and the request that it goes back to. None when no trigger can be true: then the
    instruction was meant for the moment.

    What the answers are to be like holds always. So does what is to be done "always" or "never", unless it speaks of
    the request before it.
    """
    if order.trigger:
        return order.trigger, None
    is_abiding = order.is_standing or bool(CUES["lasting"].search(order.sentence.own))
    if order.is_permission or CUES["answer_style"].search(order.content):
        return STANDING, None
    if CUES["at_this_place"].search(order.sentence.own):
        return STANDING, None
    request = request_before(turns, place)
    if request is None:
        is_about_user = CUES["order"].match(order.content) and CUES["about_the_user"].search(order.content)
        case = own_case(order.content)
        return (case, None) if case and not is_abiding else (STANDING, None) if is_abiding or is_about_user else None
    is_next_time = CUES["next_time"].search(order.sentence.own)
    if is_abiding and not (order.is_rejection or is_next_time) and not belongs_to(order.content, turns, place, request):
        return STANDING, None
    # What was reported led to what the agent then did: the report is the case. Another task is only one occasion of it.
    case = own_case(order.content) if is_request(request) else ""
    if case and not content_words(case) & content_words(request.text):
        return case, None
    return trigger_of(request), request


def _other_form(sentence: Sentence, answer: str) -> Instruction | None:
    """The whole sentence, or the first of its parts, in one of the forms of `corrections`."""
    if MASK in sentence.own or len(sentence.own) > _LONGEST_FORM:
        return None
    typed = sentence.text.rstrip(" .!?")
    text = CUES["lead_in"].sub("", typed)
    parts = list(dict.fromkeys([typed, text, *CUES["part"].split(text)]))
    for part in parts[:_MOST_PARTS]:
        clause = CUES["standing"].sub("", part if part == typed else CUES["lead_in"].sub("", part))
        if found := correction(clause, answer):
            content = without_identifiers(found.content)
            is_standing = clause != part or bool(CUES["lasting"].search(part))
            rationale = "The user said how it should be."
            if has_content(content):
                return Instruction(
                    1.25, content, found.trigger, rationale, sentence, True, is_standing, found.is_permission
                )
    return None


def rejects(turn: Turn) -> bool:
    own = [sentence.own for sentence in own_sentences(turn)]
    return any(CUES["rejection"].match(text) or CUES["failed"].search(text) for text in own)


def to_forget(sentence: Sentence) -> str:
    """What the user asks to forget, in the third person; empty when a sentence is no such request."""
    core = CUES["lead_in"].sub("", sentence.own)
    own, text = core.rstrip(" .!?"), sentence.text[len(sentence.own) - len(core) :]
    request = CUES["forget"].match(own)
    if not request or CUES["not_to_forget"].match(own):
        return ""
    group = next(name for name, match in request.groupdict().items() if match)
    subject = text[request.start(group) : request.end(group)].strip()
    if CUES["unnamed"].match(subject):
        return ""
    if subject.lower() in {"me", "about me", "i", "everything", "everything about me"}:
        return EVERYTHING
    return in_third_person(subject).rstrip(".")


def _instruction(sentence: Sentence, *, is_rejection: bool) -> Instruction | None:
    if MASK in sentence.own or (sentence.is_question and not CUES["polite_order"].search(sentence.own)):
        return None
    clause = Clause(sentence.own.rstrip(" .!?"), sentence.text.rstrip(" .!?"), is_rejection)
    clause = _without_introduction(clause).without_reason()
    content = "" if len(clause.own.split()) < 2 else _content(clause)
    if not content:
        return None
    if clause.is_negated:
        content = f"Do not {content[:1].lower()}{content[1:]}"
    if ever := _EVER_LAST.fullmatch(content):
        content = f"Always {ever[1][:1].lower()}{ever[1][1:]}."
    content = without_identifiers(_with_antecedent(content, sentence))
    if not has_content(content):
        return None
    rationale = "The user gave this instruction."
    if is_rejection:
        rationale = "The user rejected the answer and said how it should be."
    weight = 1.3 if clause.is_standing or CUES["order"].match(clause.own) else 1.2
    if clause.is_rejection and clause.is_standing:
        weight = 1.4
    return Instruction(
        weight, content, clause.trigger, rationale, sentence, is_rejection, clause.is_standing and not clause.trigger
    )


def _with_antecedent(content: str, sentence: Sentence) -> str:
    """ "Mention that" with what it refers to: the question before it, to which the user knew the answer."""
    if not (reference := CUES["says_that"].match(content)):
        return content
    before = [other for other in own_sentences(sentence.turn) if other.text != sentence.text]
    for other in before:
        if question := CUES["rhetorical"].match(other.own):
            what = third_person_pronouns(other.text[question.start("what") : question.end("what")])
            return f"{reference['says']}that they {what}."
    return ""


def _without_introduction(clause: Clause) -> Clause:
    clause = _with_condition(clause.after(CUES["lead_in"].match(clause.own)))
    standing = None if clause.trigger else CUES["standing"].match(clause.own)
    is_standing = bool(standing or CUES["standing_later"].search(clause.own))
    is_standing |= bool(clause.trigger)
    clause = replace(clause.after(standing), is_standing=is_standing, begins_standing=bool(standing))
    clause = clause if clause.trigger else _with_condition(clause)
    outlasts = clause.is_rejection or clause.is_standing or CUES["abiding"].search(clause.own)
    reminder = CUES["reminder"].match(clause.own) or (CUES["advised"].match(clause.own) if outlasts else None)
    is_negated = bool(reminder and reminder.group().rstrip().lower().endswith(" not to"))
    return replace(clause.after(reminder), is_reminder=bool(reminder), is_negated=is_negated)


def _with_condition(clause: Clause) -> Clause:
    """ "When I ask for code, …" names its own condition, and so is a standing instruction."""
    match = CUES["condition_first"].match(clause.own) or CUES["condition_last"].match(clause.own)
    if not match:
        return clause
    then = match["then"]
    is_advice = bool(CUES["advised"].match(then) and CUES["of_anybody"].match(match["when"]))
    if match.re is CUES["condition_last"] and not (clause.is_standing or is_advice or CUES["order"].match(then)):
        return clause
    if not (is_advice or CUES["order"].match(then) or CUES["imperative"].match(then) or CUES["reminder"].match(then)):
        return clause
    (start, end), (first, last) = match.span("when"), match.span("then")
    trigger = case_of(clause.text[start:end])
    return replace(clause, own=clause.own[first:last], text=clause.text[first:last], is_standing=True, trigger=trigger)


def _content(clause: Clause) -> str:
    """The instruction, or nothing when the clause is none."""
    own, text = clause.own, clause.text
    if CUES["encouraging"].search(own) or CUES["should_have"].match(own):
        return ""
    is_direct = clause.is_rejection or clause.is_standing or clause.is_reminder
    is_order = CUES["order"].match(own) or (is_direct and CUES["imperative"].match(own))
    if is_order or (clause.begins_standing and not CUES["statement"].match(own)):
        return as_instruction(text)
    if not (clause.is_rejection or clause.is_standing):
        return ""
    if CUES["should"].match(own):
        return as_instruction(re.sub(r"^(?:it|that|this)\b", "The answer", text, flags=re.I))
    if meant := CUES["meant"].match(own):
        return "Take it as the user meant it: " + as_instruction(text[meant.end() :])
    for reproach, remedy in cue_pairs("reproaches"):
        if match := reproach.match(own):
            return as_instruction(remedy + text[match.end() :])
    if CUES["x_not_y"].match(own):
        return as_instruction(f"the answer should be {text}")
    if CUES["not_but"].match(own):
        return as_instruction(re.sub(r"^(?:it|that|this)['’]s\b", "The answer is", text, flags=re.I))
    return ""
