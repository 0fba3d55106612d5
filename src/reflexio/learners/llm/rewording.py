"""From a playbook and how it did to a question, and from a model's answer to a wording."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, StringConstraints

from reflexio.learners.llm.fence import Block, cut, fenced
from reflexio.learners.llm.judging import conversation
from reflexio.learners.llm.shapes import Words
from reflexio.models.rollout import Feedback, Trial
from reflexio.ports.critic import RewordRequest

LONGEST = 8_000
MOST_TRIED = 6
TITLES = {
    "failure_modes": "what went wrong",
    "regressions": "what became worse",
    "winning_behaviors": "what became better",
    "missing_instructions": "missing instructions",
    "recommended_mutations": "recommended changes",
}


def _storable(value: object) -> object:
    return value.replace("\0", "").strip() if isinstance(value, str) else value


class Wording(BaseModel):
    model_config = ConfigDict(extra="forbid")

    content: Annotated[str, BeforeValidator(_storable), StringConstraints(min_length=1, max_length=LONGEST)]
    reason: Words = ""


def question(rewrite: RewordRequest) -> str:
    guidance = rewrite.guidance
    return fenced(
        [
            *([Block("the playbook applies when", cut(guidance.trigger))] if guidance.trigger else []),
            Block("the wording in force", cut(guidance.content, LONGEST)),
            *(block for number, trial in enumerate(rewrite.trials, start=1) for block in _replay(number, trial)),
            *(block for trial in rewrite.tried[-MOST_TRIED:] for block in _tried(trial)),
        ]
    )


def _replay(number: int, trial: Trial) -> Iterator[Block]:
    if trial.scene.lesson:
        yield Block(f"replay {number}, what the user taught", cut(trial.scene.lesson))
    if trial.error:
        yield Block(f"replay {number} failed", cut(trial.error))
        return
    yield from conversation(f"replay {number}", trial.candidate.played(trial.scene))
    yield from _said(f"replay {number}", trial)


def _tried(trial: Trial) -> Iterator[Block]:
    yield Block("tried before", cut(trial.content, LONGEST))
    yield from _said("tried before", trial)


def _said(title: str, trial: Trial) -> Iterator[Block]:
    judgement = trial.judgement
    if judgement.rationale:
        yield Block(f"{title}, the judge, score {judgement.score:.2f}", cut(judgement.rationale))
    for name, points in _points(judgement.feedback):
        yield Block(f"{title}, {name}", "\n".join(cut(each) for each in points))


def _points(feedback: Feedback) -> Iterator[tuple[str, Sequence[str]]]:
    for name, title in TITLES.items():
        if points := getattr(feedback, name):
            yield title, points
