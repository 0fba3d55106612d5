"""Asking a model for the lesson of a failed attempt."""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from reflexio.agents.attempt import Attempt, AttemptRecord, Lesson, shorten
from reflexio.agents.model import (
    LONGEST_PART,
    Model,
    ask_structured,
    ask_text,
    is_structured,
    prompt,
    resolve_model,
    usage_of,
)
from reflexio.errors import ProviderError
from reflexio.ports.chat import Chat

NO_OUTPUT = "(It came to no answer.)"
MOST_STEPS, FIRST_STEPS = 20, 5


class ReflectorAnswer(BaseModel):
    # The reason comes first, so that the lesson follows from it.
    rationale: str = ""
    lesson: str
    trigger: str = ""


class Reflector:
    """Asks a model what the agent should have known: `reflexion(…, reflect=Reflector("openai:gpt-5-mini"))`.

    The model reads the task, what the agent did, the output and the evaluator's feedback. `model` may be everything
    that a `Judge` takes.
    """

    spends = True

    def __init__(self, model: str | Chat | Model) -> None:
        self._model = resolve_model(model)

    async def __call__(self, record: AttemptRecord, attempt: Attempt) -> Lesson:
        try:
            if not is_structured(self._model):
                text, usage = await ask_text(self._model, prompt("reflect"), describe_failure(record, attempt.task))
                lesson = Lesson(text)
            else:
                feedback = record.evaluation.feedback
                output = str(record.output) if record.finished else NO_OUTPUT
                steps = "\n".join(shown_steps(record.steps))
                parts = {"task": str(attempt.task), "steps": steps, "output": output, "feedback": feedback}
                answer, usage = await ask_structured(self._model, prompt("lesson"), parts, ReflectorAnswer)
                lesson = Lesson(answer.lesson, answer.trigger.strip(), answer.rationale.strip())
        except ProviderError as error:
            if error.spend is not None:
                attempt.spend(usage_of(error.spend))
            raise
        attempt.spend(usage)
        return lesson


def describe_failure(record: AttemptRecord, task: Any) -> str:
    """A failed attempt as plain text: what the agent did, its answer, and the evaluator's feedback."""
    steps = "\n".join(shown_steps(record.steps))
    did = f"What the agent did:\n{steps}\n\n" if steps else ""
    output = shorten(str(record.output), LONGEST_PART) if record.finished else NO_OUTPUT
    feedback = record.evaluation.feedback
    said = f"The evaluator said:\n{feedback}\n\n" if feedback else ""
    return (
        f"Task:\n{task}\n\nFailed attempt (score {record.score:.2f}):\n{output}\n\n{did}"
        f"{said}Write one sentence of advice for the next attempt."
    )


def shown_steps(steps: Sequence[str]) -> list[str]:
    """The steps that a reflector reads: of very many, the first and the last."""
    if len(steps) <= MOST_STEPS:
        return list(steps)
    left_out = len(steps) - MOST_STEPS
    return [*steps[:FIRST_STEPS], f"… ({left_out} more)", *steps[FIRST_STEPS - MOST_STEPS :]]
