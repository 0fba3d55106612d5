"""From candidates with neighbours to a question, and from a model's verdicts to decisions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from reflexio.learners.llm.fence import Block, cut, fenced
from reflexio.learners.llm.shapes import Verdict, Verdicts
from reflexio.models.learned import Candidate, Decision, Neighbourhood
from reflexio.models.learning import Kind, Learning

MOST_NEIGHBOURS = 5
UNANSWERED = "the model gave no decision"

Numbers = Mapping[int, Learning]


@dataclass(frozen=True)
class Question:
    """The text, and what its numbers stand for: the stored notes near each new note."""

    text: str
    near: tuple[Numbers, ...]


def question(questions: Sequence[Neighbourhood]) -> Question:
    """Every stored note is listed once, however many new ones it is near to."""
    close = [[each.learning for each in asked.neighbours[:MOST_NEIGHBOURS]] for asked in questions]
    stored = list({learning.id: learning for learnings in close for learning in learnings}.values())
    numbers = {learning.id: number for number, learning in enumerate(stored, start=1)}
    near = tuple({numbers[learning.id]: learning for learning in learnings} for learnings in close)
    blocks = [
        *(Block(f"stored note {numbers[each.id]}", _learning(each)) for each in stored),
        *_new(questions, near),
    ]
    return Question(fenced(blocks), near)


def _new(questions: Sequence[Neighbourhood], near: Sequence[Numbers]) -> Iterator[Block]:
    for number, (asked, close) in enumerate(zip(questions, near, strict=True), start=1):
        what = "a request to forget" if asked.candidate.forget else _kind(asked.candidate)
        yield Block(f"new note {number}, {what}, near stored {', '.join(map(str, close))}", _candidate(asked.candidate))


def _kind(candidate: Candidate) -> str:
    return "profile" if candidate.kind is Kind.PROFILE else "playbook"


def _candidate(candidate: Candidate) -> str:
    return note(candidate.trigger, candidate.content, candidate.rationale)


def _learning(learning: Learning) -> str:
    return note(learning.trigger, learning.content, learning.rationale)


def note(trigger: str, content: str, rationale: str) -> str:
    parts = {"trigger": trigger, "content": content, "rationale": rationale}
    named = [f"{name}: {cut(text)}" for name, text in parts.items() if text]
    return cut(content) if len(named) == 1 else "\n".join(named)


def decisions(verdicts: Verdicts, questions: Sequence[Neighbourhood], near: Sequence[Numbers]) -> tuple[Decision, ...]:
    """One decision for each question. A stored note is retired by one decision only: the first that names it."""
    by_note = {verdict.note: verdict for verdict in reversed(verdicts.decisions)}
    taken: set[int] = set()
    made = []
    for number, (asked, close) in enumerate(zip(questions, near, strict=True), start=1):
        decision = _decision(asked.candidate, by_note.get(number), close, taken)
        taken.update(decision.targets)
        made.append(decision)
    return tuple(made)


def _decision(candidate: Candidate, verdict: Verdict | None, close: Numbers, taken: set[int]) -> Decision:
    if verdict is None:
        return Decision("drop" if candidate.forget else "add", reason=UNANSWERED)
    targets = _targets(verdict.targets, close, taken)
    if candidate.forget:
        return _forgetting(verdict, targets)
    match verdict.action:
        case "drop":
            return Decision("drop", reason=verdict.reason)
        case "replace" if targets:
            return Decision("replace", targets, reason=verdict.reason)
        case "merge" if targets:
            return _merged(candidate, verdict, targets)
        case _:
            return Decision("add", reason=verdict.reason)


def _targets(numbers: Iterable[int], close: Numbers, taken: set[int]) -> tuple[int, ...]:
    meant = dict.fromkeys(close[number].id for number in numbers if number in close)
    return tuple(target for target in meant if target not in taken)


def _forgetting(verdict: Verdict, targets: tuple[int, ...]) -> Decision:
    wanted = verdict.action not in ("add", "drop")
    return Decision("forget" if wanted and targets else "drop", targets if wanted else (), reason=verdict.reason)


def _merged(candidate: Candidate, verdict: Verdict, targets: tuple[int, ...]) -> Decision:
    """Without words of its own, a merged note keeps the new one's."""
    is_playbook = candidate.kind is not Kind.PROFILE
    return Decision(
        "merge",
        targets,
        content=verdict.content or candidate.content,
        trigger=(verdict.trigger or candidate.trigger) if is_playbook else "",
        rationale=(verdict.rationale or candidate.rationale) if is_playbook else "",
        reason=verdict.reason,
    )
