"""Asking a model for the lesson of a failed attempt."""

from typing import Any

from pydantic import BaseModel

from reflexio.agents.attempt import Attempt, AttemptRecord, Lesson
from reflexio.agents.model import Model, ask_structured, ask_text, is_structured, prompt, resolve_model, usage_of
from reflexio.errors import ProviderError
from reflexio.ports.chat import Chat


class ReflectorAnswer(BaseModel):
    lesson: str
    trigger: str = ""


class Reflector:
    """Asks a model what the agent should have known: `reflexion(…, reflect=Reflector("openai:gpt-5-mini"))`.

    The model reads the task, the output and the evaluator's feedback. `model` may be everything that a `Judge` takes.
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
                parts = {"task": str(attempt.task), "output": str(record.output), "feedback": feedback}
                answer, usage = await ask_structured(self._model, prompt("lesson"), parts, ReflectorAnswer)
                lesson = Lesson(answer.lesson, trigger=answer.trigger.strip())
        except ProviderError as error:
            if error.spend is not None:
                attempt.spend(usage_of(error.spend))
            raise
        attempt.spend(usage)
        return lesson


def describe_failure(record: AttemptRecord, task: Any) -> str:
    """A failed attempt as plain text, with the evaluator's feedback."""
    feedback = record.evaluation.feedback
    said = f"The evaluator said:\n{feedback}\n\n" if feedback else ""
    return (
        f"Task:\n{task}\n\nFailed attempt (score {record.score:.2f}):\n{record.output}\n\n"
        f"{said}Write one sentence of advice for the next attempt."
    )
