"""From what many users taught to a question, and from a model's answer to a rule."""

from collections.abc import Iterator

from reflexio.learners.llm.fence import Block, fenced
from reflexio.learners.llm.settling import note
from reflexio.learners.llm.shapes import Generalised
from reflexio.models.learned import Gathered, Rule

LONGEST_QUESTION = 60_000
"""Characters of notes: the clearest come first, and the rest say about the same."""


def question(gathered: Gathered) -> str:
    return fenced(list(_blocks(gathered)))


def _blocks(gathered: Gathered) -> Iterator[Block]:
    room = LONGEST_QUESTION
    for number, each in enumerate(gathered.members, start=1):
        text = note(each.trigger, each.content, each.rationale)
        if number > 1 and len(text) > room:
            break
        room -= len(text)
        yield Block(f"note {number} of {gathered.count}", text)
    if before := gathered.before:
        yield Block("the rule made earlier of these notes", note(before.trigger, before.content, before.rationale))
    for number, each in enumerate(gathered.known, start=1):
        yield Block(f"known rule {number}", note(each.trigger, each.content, each.rationale))


def rule(answer: Generalised) -> Rule | None:
    """Without content it is no rule: what is known says it."""
    found = answer.rule
    return Rule(found.content, found.trigger, found.rationale) if found and found.content else None
