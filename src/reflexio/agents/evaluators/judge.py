"""A model that judges an output against a rubric, and reading the score in its answer.

A wrong reading would end a run with a success that did not happen. So a bare whole number in a sentence, a number above
its scale, a range or a version is not a score.
"""

import re
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, Field

from reflexio.agents.attempt import Attempt, Evaluation
from reflexio.agents.budget import NO_USAGE, Usage
from reflexio.agents.calls import describe
from reflexio.agents.model import Model, ask_structured, ask_text, is_structured, prompt, resolve_model, usage_of
from reflexio.errors import ProviderError
from reflexio.ports.chat import Chat

SHOWN_CHARS, LONGEST_OPENING = 300, 200

_NUMBER = r"[+-]?(?:[0-9]{1,9}(?:[.,][0-9]{1,18})?|[.,][0-9]{1,18})(?:[eE][+-]?[0-9]{1,3})?"
_VALUE = rf"(?P<value>{_NUMBER})(?:\s*(?P<percent>%)|\s*(?:/|out\s+of|of)\s*(?P<scale>{_NUMBER}))?"
_END = r"(?![0-9A-Za-z])(?![.,][0-9])(?!\s*[-–—/]\s*[0-9])"
_MARKS = r"[\s*_`\"']*"
_LABELLED = re.compile(rf"score{_MARKS}[:=]{_MARKS}{_VALUE}{_END}", re.IGNORECASE)
_ALONE = re.compile(rf"{_MARKS}{_VALUE}{_END}{_MARKS}\.?{_MARKS}")
_OPENING = re.compile(rf"{_MARKS}(?=[^\n]*[.,/%])(?![0-9]+[.,]?\s){_VALUE}{_END}{_MARKS}(?:[:;,.(\n–—]|-\s)")
_REQUESTED = re.compile(rf"^[ \t*_`\"'{{#>-]*{_LABELLED.pattern}", re.IGNORECASE | re.MULTILINE)
_CONCLUDING = re.compile(rf"(?:\b(?:final|overall|total){_MARKS}|[{{,]\s*[\"']){_LABELLED.pattern}", re.IGNORECASE)
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]*,[0-9]{3}")


class JudgeAnswer(BaseModel):
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
    score = read_score(text)
    if score is None:
        excerpt = " ".join(text.split())[:SHOWN_CHARS]
        error = f"The judge's answer holds no score: {excerpt!r}" if excerpt else "The judge's answer is empty."
        return Evaluation(0.0, False, text.strip(), evaluator=evaluator, usage=usage, error=error)
    first, _, rest = text.strip().partition("\n")
    feedback = rest.strip() or (first if len(first.split()) > 2 else "")
    return Evaluation(score, feedback=feedback, evaluator=evaluator, usage=usage)


def parse_score(text: str) -> float:
    """The score in a judge's answer, from 0 to 1; 0.0 when there is none.

    >>> [parse_score(text) for text in ("score: 0.7", "score: 8/10", "score: 85%", "attempt 1 was good")]
    [0.7, 0.8, 0.85, 0.0]
    """
    return read_score(text) or 0.0


def read_score(text: str) -> float | None:
    """The score in a judge's answer, from 0 to 1; None when there is none.

    A line that begins with `score:` has the requested format, and the first such line counts. Otherwise several
    labelled scores must agree, or one must be called the final or overall one. Without any label, the answer must
    begin with the number.
    """
    if requested := _scores(_REQUESTED, text):
        return requested[0]
    labelled = _scores(_LABELLED, text)
    if len(set(labelled)) > 1:
        return next(iter(_scores(_CONCLUDING, text)[::-1]), None)
    if labelled:
        return labelled[0]
    first = text.strip().partition("\n")[0].strip()[:LONGEST_OPENING]
    match = _ALONE.fullmatch(first) or _OPENING.match(first)
    return _score(match) if match else None


def _scores(pattern: re.Pattern[str], text: str) -> list[float]:
    return [score for match in pattern.finditer(text) if (score := _score(match)) is not None]


def _score(match: re.Match[str]) -> float | None:
    """From 0 to 1; a negative score counts as 0, and one above its scale could mean anything."""
    value, percent, scale = match.group("value", "percent", "scale")
    if "," in value and _THOUSANDS.fullmatch(value):
        return None
    whole = 100.0 if percent else float((scale or "1").replace(",", "."))
    if whole <= 0:
        return None
    score = float(value.replace(",", ".")) / whole
    return max(0.0, score) if score <= 1.0 else None
