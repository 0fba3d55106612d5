"""A model that judges an output against a rubric. `score.py` reads the score in its answer."""

from dataclasses import replace
from typing import Any

from pydantic import BaseModel, Field

from reflexio.agents.attempt import Attempt, Evaluation, shorten
from reflexio.agents.budget import NO_USAGE, Usage
from reflexio.agents.calls import describe
from reflexio.agents.evaluators.score import read_verdict, without_thoughts
from reflexio.agents.model import Model, ask_structured, ask_text, is_structured, prompt, resolve_model, usage_of
from reflexio.errors import ProviderError
from reflexio.ports.chat import Chat

SHOWN_CHARS = 300


class JudgeAnswer(BaseModel):
    # The reasons come first, so that the score follows from them.
    feedback: str = ""
    score: float = Field(ge=0, le=1)


class Judge:
    """Asks a model how well an output does what the task and the rubric ask for.

    `model` is a name as on the server ("openai:gpt-5-mini"), a chat model, or an agent's `Model`. A model that offers
    structured answers is asked for them; from the text of others the score is read leniently. An unreadable answer
    and a failed call both give an `Evaluation.error`, never a score of 0 without an explanation.
    """

    spends = True

    def __init__(self, model: str | Chat | Model, rubric: str = "", *, threshold: float | None = None) -> None:
        self._model = resolve_model(model)
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
            evaluation = await self._ask(task, str(output))
        except ProviderError as error:
            usage = NO_USAGE if error.spend is None else usage_of(error.spend)
            return Evaluation(0.0, False, evaluator=self.name, usage=usage, error=describe(error))
        if self._threshold is None or evaluation.error is not None:
            return evaluation
        return replace(evaluation, passed=evaluation.score >= self._threshold)

    async def _ask(self, task: str, output: str) -> Evaluation:
        if is_structured(self._model):
            parts = {"rubric": self._rubric or "The task itself.", "task": task, "output": output or "(empty)"}
            answer, usage = await ask_structured(self._model, prompt("judge"), parts, JudgeAnswer)
            return Evaluation(answer.score, feedback=answer.feedback.strip(), usage=usage)
        instructions = prompt("evaluate") + (f"\n\nWhat counts:\n{self._rubric}" if self._rubric else "")
        text, usage = await ask_text(self._model, instructions, f"Task:\n{task}\n\nAgent output:\n{output}")
        return read_answer(text, evaluator=self.name, usage=usage)


def read_answer(text: str, *, evaluator: str, usage: Usage) -> Evaluation:
    """A judge's answer in text: a score, and the other text as feedback."""
    verdict = read_verdict(text)
    if verdict is None:
        answer = without_thoughts(text)
        excerpt = shorten(" ".join(text.split()), SHOWN_CHARS)
        error = f"The judge's answer holds no score: {excerpt!r}" if excerpt else "The judge's answer is empty."
        return Evaluation(0.0, False, answer, evaluator=evaluator, usage=usage, error=error)
    return Evaluation(verdict.score, feedback=verdict.feedback, evaluator=evaluator, usage=usage)
