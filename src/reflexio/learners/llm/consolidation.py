"""Consolidation and summarising: the questions to a model, and what its answers decide.

Candidates with neighbours become one question, and the answer one decision for each. A cluster of many users' playbooks
becomes one question, and the answer one agent playbook.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from reflexio.learners.llm.delimiters import Block, cut, delimit
from reflexio.learners.llm.schemas import ConsolidationAnswer, NoteDecision, SummaryAnswer
from reflexio.models.extraction import ClusterToSummarise, Decision, ExtractedLearning, Neighbourhood, PlaybookText
from reflexio.models.learning import Kind, Learning

MOST_NEIGHBOURS = 5
LONGEST_CLUSTER = 60_000
"""Characters of notes: the clearest come first, and the rest say about the same."""
UNANSWERED = "the model gave no decision"

Numbers = Mapping[int, Learning]


@dataclass(frozen=True)
class ConsolidationQuestion:
    """The text, and what its numbers mean: the stored notes near each new note."""

    text: str
    near: tuple[Numbers, ...]


def consolidation_question(neighbourhoods: Sequence[Neighbourhood]) -> ConsolidationQuestion:
    """Every stored note is listed once, however many new notes it is near to."""
    close = [[near.learning for near in group.neighbours[:MOST_NEIGHBOURS]] for group in neighbourhoods]
    stored = list({learning.id: learning for learnings in close for learning in learnings}.values())
    numbers = {learning.id: number for number, learning in enumerate(stored, start=1)}
    near = tuple({numbers[learning.id]: learning for learning in learnings} for learnings in close)
    blocks = [Block(f"stored note {numbers[learning.id]}", _note(learning)) for learning in stored]
    for number, (neighbourhood, numbered) in enumerate(zip(neighbourhoods, near, strict=True), start=1):
        candidate = neighbourhood.candidate
        kind = "profile" if candidate.kind is Kind.PROFILE else "playbook"
        title = f"new note {number}, {'a request to forget' if candidate.forget else kind}"
        blocks.append(Block(f"{title}, near stored {', '.join(map(str, numbered))}", _note(candidate)))
    return ConsolidationQuestion(delimit(blocks), near)


def _note(learning: ExtractedLearning | Learning) -> str:
    parts = {"trigger": learning.trigger, "content": learning.content, "rationale": learning.rationale}
    lines = [f"{name}: {cut(text)}" for name, text in parts.items() if text]
    return cut(learning.content) if len(lines) == 1 else "\n".join(lines)


def decisions(
    answer: ConsolidationAnswer, neighbourhoods: Sequence[Neighbourhood], near: Sequence[Numbers]
) -> tuple[Decision, ...]:
    """One decision for each candidate. A stored note is retired by one decision only: the first that names it."""
    by_note = {decision.note: decision for decision in reversed(answer.decisions)}
    retired: set[int] = set()
    decided = []
    for number, (neighbourhood, close) in enumerate(zip(neighbourhoods, near, strict=True), start=1):
        decision = _decision(neighbourhood.candidate, by_note.get(number), close, retired)
        retired.update(decision.targets)
        decided.append(decision)
    return tuple(decided)


def _decision(candidate: ExtractedLearning, answer: NoteDecision | None, close: Numbers, retired: set[int]) -> Decision:
    if answer is None:
        return Decision("drop" if candidate.forget else "add", reason=UNANSWERED)
    named = dict.fromkeys(close[number].id for number in answer.targets if number in close)
    targets = tuple(target for target in named if target not in retired)
    if candidate.forget:
        if targets and answer.action not in ("add", "drop"):
            return Decision("forget", targets, reason=answer.reason)
        return Decision("drop", reason=answer.reason)
    match answer.action:
        case "drop":
            return Decision("drop", reason=answer.reason)
        case "replace" if targets:
            return Decision("replace", targets, reason=answer.reason)
        case "merge" if targets:
            # A merged note without wording of its own keeps that of the new one.
            is_playbook = candidate.kind is not Kind.PROFILE
            return Decision(
                "merge",
                targets,
                content=answer.content or candidate.content,
                trigger=(answer.trigger or candidate.trigger) if is_playbook else "",
                rationale=(answer.rationale or candidate.rationale) if is_playbook else "",
                reason=answer.reason,
            )
        case _:
            return Decision("add", reason=answer.reason)


def summary_question(cluster: ClusterToSummarise) -> str:
    return delimit(list(_cluster_blocks(cluster)))


def _cluster_blocks(cluster: ClusterToSummarise) -> Iterator[Block]:
    room = LONGEST_CLUSTER
    for number, member in enumerate(cluster.members, start=1):
        text = _note(member)
        if number > 1 and len(text) > room:
            break
        room -= len(text)
        yield Block(f"note {number} of {cluster.count}", text)
    if cluster.before:
        yield Block("the rule made earlier of these notes", _note(cluster.before))
    for number, known in enumerate(cluster.known, start=1):
        yield Block(f"known rule {number}", _note(known))


def summary(answer: SummaryAnswer) -> PlaybookText | None:
    """The agent playbook; None without content, which means that a known one says it."""
    rule = answer.rule
    return PlaybookText(rule.content, rule.trigger, rule.rationale) if rule and rule.content else None
