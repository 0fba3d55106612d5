"""A model that turns a failed attempt into a lesson."""

from typing import Any

from pydantic import BaseModel

from reflexio.agents.asking import ask, is_structured, say, usage_of
from reflexio.agents.attempt import Attempt, AttemptRecord
from reflexio.agents.model import Model
from reflexio.agents.opened import named
from reflexio.agents.prompts import prompt
from reflexio.agents.values import Lesson
from reflexio.errors import ProviderError
from reflexio.ports.chat import Chat


class _Lesson(BaseModel):
    lesson: str
    trigger: str = ""


class Reflector:
    """Asks a model what the agent should have been told: `reflexion(…, reflect=Reflector("openai:gpt-5-mini"))`.

    It reads the task, the output and the evaluator's words. `model` may be all that a `Judge` takes.
    """

    spends = True

    def __init__(self, model: str | Chat | Model) -> None:
        self._model = named(model)

    async def __call__(self, record: AttemptRecord, attempt: Attempt) -> Lesson:
        try:
            return await self._asked(record, attempt)
        except ProviderError as error:
            if error.spend is not None:
                attempt.spend(usage_of(error.spend))
            raise

    async def _asked(self, record: AttemptRecord, attempt: Attempt) -> Lesson:
        model = self._model
        if is_structured(model):
            parts = {"task": str(attempt.task), "output": str(record.output), "feedback": record.evaluation.feedback}
            said, usage = await ask(model, prompt("lesson"), parts, _Lesson)
            attempt.spend(usage)
            return Lesson(said.lesson, trigger=said.trigger.strip())
        text, usage = await say(model, prompt("reflect"), failure_told(record, attempt.task))
        attempt.spend(usage)
        return Lesson(text)


def failure_told(record: AttemptRecord, task: Any) -> str:
    """A failed attempt as plain text, with what the evaluator said about it."""
    feedback = record.evaluation.feedback
    said = f"The evaluator said:\n{feedback}\n\n" if feedback else ""
    return (
        f"Task:\n{task}\n\nFailed attempt (score {record.score:.2f}):\n{record.output}\n\n"
        f"{said}Write one sentence of advice for the next attempt."
    )
