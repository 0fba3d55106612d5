"""Turning what any evaluator answers or raises into an `Evaluation`, and combining several evaluators into one."""

import math
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any as Anything  # `Any` is an evaluator here
from typing import TypeAlias

from reflexio.agents.attempt import Attempt, Evaluation
from reflexio.agents.budget import NO_USAGE, Usage
from reflexio.agents.calls import FAILURES, AsyncCall, as_async_call, check_function, describe, unless_cancelled

Evaluator: TypeAlias = Callable[..., Anything]
"""`evaluate(output)` or `evaluate(output, attempt)`, plain or async.

It answers with a score, a bool, `(score or bool, feedback)`, an `Evaluation`, or None for a pass.
"""

Evaluators: TypeAlias = Evaluator | Sequence[Evaluator]
Evaluate: TypeAlias = Callable[[Anything, Attempt | None], Awaitable[Evaluation]]

DEFAULT_THRESHOLD = 0.8
EXPECTED = "a function of the output (and the attempt), an instance such as UnitTests(…) or Judge(…), or a list of them"
_FENCED = re.compile(r"^[ \t]*```[^\n`]*\n(.*?)^[ \t]*```[ \t\r]*$", re.MULTILINE | re.DOTALL)


def as_evaluate(evaluator: Evaluators, name: str = "evaluate") -> Evaluate:
    """The evaluator as a function that always answers with an `Evaluation` and raises only when it is cancelled.

    `name` is that of the caller's argument, for the TypeError about something that is no evaluator.
    """
    if isinstance(evaluator, list | tuple):
        for part in evaluator:
            as_evaluate(part, name)
        return as_evaluate(All(*evaluator), name)
    check_function(name, evaluator, EXPECTED)
    assert not isinstance(evaluator, Sequence)
    return guard(as_async_call(evaluator), name_of(evaluator))


def guard(call: AsyncCall, name: str) -> Evaluate:
    """An AssertionError fails the output: its message is the feedback. Any other error is the evaluator's own."""

    async def evaluate(output: Anything, attempt: Attempt | None) -> Evaluation:
        try:
            return to_evaluation(await call(output, attempt), name)
        except AssertionError as error:
            return Evaluation(0.0, False, str(error) or "An assertion of the evaluator failed.", evaluator=name)
        except FAILURES as error:  # a finished answer must survive it
            return Evaluation(0.0, False, evaluator=name, error=describe(unless_cancelled(error)))

    return evaluate


def to_evaluation(answer: Anything, evaluator: str, feedback: str = "") -> Evaluation:
    match answer:
        case Evaluation():
            return answer if answer.evaluator else replace(answer, evaluator=evaluator)
        case bool():
            return Evaluation(float(answer), answer, feedback, evaluator=evaluator)
        case int() | float():
            return Evaluation(float(answer), None, feedback, evaluator=evaluator)
        case None:
            return Evaluation(1.0, True, evaluator=evaluator)
        case (score, str(words)) if not feedback and not isinstance(score, Evaluation | None):
            return to_evaluation(score, evaluator, words)
        case _ if hasattr(answer, "item") and getattr(answer, "ndim", 1) == 0:  # numpy's numbers and booleans
            return to_evaluation(answer.item(), evaluator, feedback)
        case _:
            raise TypeError(f"An evaluator answers with a score, a bool, (score, feedback) or None, not {answer!r}.")


def name_of(evaluator: Evaluator) -> str:
    return str(getattr(evaluator, "name", None) or getattr(evaluator, "__name__", None) or type(evaluator).__name__)


def is_passed(evaluation: Evaluation, threshold: float) -> bool:
    if evaluation.error is not None:
        return False
    return evaluation.score >= threshold if evaluation.passed is None else evaluation.passed


def extract_code(text: str) -> str:
    """The longest block between code fences, or the whole text when there are none.

    >>> extract_code("Here it is:\\n```python\\nx = 1\\n```\\nDone.")
    'x = 1\\n'
    """
    return max(_FENCED.findall(text), key=len, default=text)


# Combinations


class _Combined:
    def __init__(self, evaluators: Sequence[Evaluator]) -> None:
        if not evaluators:
            raise ValueError(f"{type(self).__name__} needs at least one evaluator.")
        self.evaluators = tuple(evaluators)
        self.spends = any(getattr(evaluator, "spends", False) for evaluator in evaluators)
        self._evaluate = [as_evaluate(evaluator) for evaluator in evaluators]
        self._names = _distinct([name_of(evaluator) for evaluator in evaluators])

    def _combine(self, score: float, passed: bool | None, evaluations: Sequence[Evaluation]) -> Evaluation:
        by_name = zip(self._names, evaluations, strict=False)
        usages = [evaluation.usage for evaluation in evaluations if evaluation.usage is not NO_USAGE]
        return Evaluation(
            score,
            passed,
            "\n".join(evaluation.feedback for evaluation in evaluations if evaluation.feedback),
            {name: evaluation.score for name, evaluation in by_name if evaluation.error is None},
            next((evaluation.ideal for evaluation in evaluations if evaluation.ideal is not None), None),
            usage=sum(usages, Usage()) if usages else NO_USAGE,
        )

    def _failed(self, evaluations: Sequence[Evaluation]) -> Evaluation:
        by_name = zip(self._names, evaluations, strict=False)
        errors = (f"{name}: {evaluation.error}" for name, evaluation in by_name if evaluation.error is not None)
        return replace(self._combine(0.0, False, evaluations), error="; ".join(errors))


class All(_Combined):
    """Passes when all pass. They run in order, and the first that fails is the last: put the cheap ones first.

    The score is the mean, in which evaluators that did not run count 0: an output that gets further scores higher.
    """

    def __init__(self, *evaluators: Evaluator) -> None:
        super().__init__(evaluators)

    async def __call__(self, output: Anything, attempt: Attempt | None = None) -> Evaluation:
        evaluations: list[Evaluation] = []
        passed = True
        for evaluate in self._evaluate:
            evaluations.append(evaluation := await evaluate(output, attempt))
            if evaluation.error is not None:
                return self._failed(evaluations)
            passed = is_passed(evaluation, _threshold(attempt))
            if not passed:
                break
        mean = sum(evaluation.score for evaluation in evaluations) / len(self._evaluate)
        return self._combine(mean, passed, evaluations)


class Any(_Combined):
    """Passes when one passes. They run in order until one does; the score is the best one."""

    def __init__(self, *evaluators: Evaluator) -> None:
        super().__init__(evaluators)

    async def __call__(self, output: Anything, attempt: Attempt | None = None) -> Evaluation:
        evaluations: list[Evaluation] = []
        for evaluate in self._evaluate:
            evaluations.append(evaluation := await evaluate(output, attempt))
            if is_passed(evaluation, _threshold(attempt)):
                return replace(self._combine(evaluation.score, True, evaluations), feedback=evaluation.feedback)
        if all(evaluation.error is not None for evaluation in evaluations):
            return self._failed(evaluations)
        return self._combine(max(evaluation.score for evaluation in evaluations), False, evaluations)


class Weighted(_Combined):
    """The weighted mean of all scores, compared with the threshold: `Weighted((tests, 3), (style, 1))`."""

    def __init__(self, *weighted: tuple[Evaluator, float]) -> None:
        super().__init__([evaluator for evaluator, _ in weighted])
        self._weights = [weight for _, weight in weighted]
        if min(self._weights) < 0 or not 0 < sum(self._weights) < math.inf:
            raise ValueError(f"Weights are 0 or more, and at least one is above 0, not {self._weights!r}.")

    async def __call__(self, output: Anything, attempt: Attempt | None = None) -> Evaluation:
        evaluations = [await evaluate(output, attempt) for evaluate in self._evaluate]
        if any(evaluation.error is not None for evaluation in evaluations):
            return self._failed(evaluations)
        total = sum(evaluation.score * weight for evaluation, weight in zip(evaluations, self._weights, strict=True))
        return self._combine(min(1.0, total / sum(self._weights)), None, evaluations)


def _threshold(attempt: Attempt | None) -> float:
    return attempt.threshold if attempt else DEFAULT_THRESHOLD


def _distinct(names: Sequence[str]) -> list[str]:
    """Evaluators with the same name get a number."""
    return [
        name if names.count(name) == 1 else f"{name} {names[: index + 1].count(name)}"
        for index, name in enumerate(names)
    ]
