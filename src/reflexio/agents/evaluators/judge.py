"""A model that judges an output against a rubric."""

from dataclasses import replace
from typing import Any

from pydantic import BaseModel, Field

from reflexio.agents.asking import ask, is_structured, say, usage_of
from reflexio.agents.attempt import Attempt
from reflexio.agents.evaluators.outcome import described
from reflexio.agents.model import Model
from reflexio.agents.opened import named
from reflexio.agents.prompts import prompt
from reflexio.agents.score import read_score
from reflexio.agents.values import NO_USAGE, Evaluation, Usage
from reflexio.errors import ProviderError
from reflexio.ports.chat import Chat

SHOWN = 300


class Verdict(BaseModel):
    score: float = Field(ge=0, le=1)
    feedback: str = ""


class Judge:
    """Asks a model how well an output does what the task and the rubric ask for.

    `model` is a name as the server takes it ("openai:gpt-5-mini"), a chat model, or an agent's `Model`. One that offers
    structured answers is asked for them; the words of another are read with patience. An answer that cannot be read
    and a call that fails are both an `Evaluation.error`, never a score of 0 without a word.
    """

    spends = True

    def __init__(self, model: str | Chat | Model, rubric: str = "", *, threshold: float | None = None) -> None:
        self._model = named(model)
        self._rubric = rubric
        self._threshold = threshold

    @property
    def model_name(self) -> str:
        return str(self._model.name)

    @property
    def name(self) -> str:
        return f"Judge({self.model_name})"

    async def __call__(self, output: Any, attempt: Attempt | None = None) -> Evaluation:
        task = "" if attempt is None else str(attempt.task)
        try:
            found = await self._asked(task, str(output))
        except ProviderError as error:
            usage = NO_USAGE if error.spend is None else usage_of(error.spend)
            return Evaluation(0.0, False, evaluator=self.name, usage=usage, error=described(error))
        if self._threshold is None or found.error is not None:
            return found
        return replace(found, passed=found.score >= self._threshold)

    async def _asked(self, task: str, output: str) -> Evaluation:
        model = self._model
        if is_structured(model):
            parts = {"rubric": self._rubric or "The task itself.", "task": task, "output": output or "(empty)"}
            verdict, usage = await ask(model, prompt("judge"), parts, Verdict)
            return Evaluation(verdict.score, feedback=verdict.feedback.strip(), usage=usage)
        instructions = prompt("evaluate") + (f"\n\nWhat counts:\n{self._rubric}" if self._rubric else "")
        text, usage = await say(model, instructions, f"Task:\n{task}\n\nAgent output:\n{output}")
        return verdict_in(text, evaluator=self.name, usage=usage)


def verdict_in(text: str, *, evaluator: str, usage: Usage) -> Evaluation:
    """What a judge wrote: a score, and as feedback what stands beside it."""
    score = read_score(text)
    if score is None:
        said = " ".join(text.split())[:SHOWN]
        error = f"The judge's answer holds no score: {said!r}" if said else "The judge answered nothing."
        return Evaluation(0.0, False, text.strip(), evaluator=evaluator, usage=usage, error=error)
    first, _, rest = text.strip().partition("\n")
    feedback = rest.strip() or (first if len(first.split()) > 2 else "")
    return Evaluation(score, feedback=feedback, evaluator=evaluator, usage=usage)
