"""Evaluators made of others: all must pass, any may pass, or their scores are weighed."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any as Anything

from reflexio.agents.attempt import Attempt
from reflexio.agents.evaluators.outcome import DEFAULT_THRESHOLD, Evaluator, evaluating, name_of, passes
from reflexio.agents.values import NO_USAGE, Evaluation, Usage


class _Combined:
    def __init__(self, evaluators: Sequence[Evaluator]) -> None:
        if not evaluators:
            raise ValueError(f"{type(self).__name__} needs at least one evaluator.")
        self.evaluators = tuple(evaluators)
        self._evaluate = [evaluating(each) for each in evaluators]
        self._names = _distinct([name_of(each) for each in evaluators])
        self.spends = any(getattr(each, "spends", False) for each in evaluators)

    async def _found(self, number: int, output: Anything, attempt: Attempt | None) -> tuple[Evaluation, bool]:
        evaluation = await self._evaluate[number](output, attempt)
        return evaluation, passes(evaluation, attempt.threshold if attempt else DEFAULT_THRESHOLD)

    def _together(self, score: float, passed: bool | None, found: Sequence[Evaluation]) -> Evaluation:
        names = self._names
        criteria = {names[at]: each.score for at, each in enumerate(found) if each.error is None}
        return Evaluation(
            score,
            passed,
            "\n".join(each.feedback for each in found if each.feedback),
            criteria,
            next((each.ideal for each in found if each.ideal is not None), None),
            usage=_used(found),
        )

    def _failed(self, found: Sequence[Evaluation]) -> Evaluation:
        errors = (f"{self._names[at]}: {each.error}" for at, each in enumerate(found) if each.error is not None)
        return replace(self._together(0.0, False, found), error="; ".join(errors))


class All(_Combined):
    """Passes when all pass. They are asked in order, and the first that fails ends it: put the cheap ones first.

    The score is the mean, in which those not asked count nothing: an output that gets further scores higher.
    """

    def __init__(self, *evaluators: Evaluator) -> None:
        super().__init__(evaluators)

    async def __call__(self, output: Anything, attempt: Attempt | None = None) -> Evaluation:
        found: list[Evaluation] = []
        for number in range(len(self._evaluate)):
            evaluation, passed = await self._found(number, output, attempt)
            found.append(evaluation)
            if evaluation.error is not None:
                return self._failed(found)
            if not passed:
                break
        else:
            return self._together(self._mean(found), True, found)
        return self._together(self._mean(found), False, found)

    def _mean(self, found: Sequence[Evaluation]) -> float:
        return sum(each.score for each in found) / len(self._evaluate)


class Any(_Combined):
    """Passes when one passes. They are asked in order until one does; the score is the best one."""

    def __init__(self, *evaluators: Evaluator) -> None:
        super().__init__(evaluators)

    async def __call__(self, output: Anything, attempt: Attempt | None = None) -> Evaluation:
        found: list[Evaluation] = []
        for number in range(len(self._evaluate)):
            evaluation, passed = await self._found(number, output, attempt)
            found.append(evaluation)
            if passed:
                return replace(self._together(evaluation.score, True, found), feedback=evaluation.feedback)
        if all(each.error is not None for each in found):
            return self._failed(found)
        return self._together(max(each.score for each in found), False, found)


class Weighted(_Combined):
    """The weighted mean of all scores, held against the threshold: `Weighted((tests, 3), (style, 1))`."""

    def __init__(self, *weighted: tuple[Evaluator, float]) -> None:
        super().__init__([evaluator for evaluator, _ in weighted])
        self._weights = [weight for _, weight in weighted]
        if min(self._weights) < 0 or not 0 < sum(self._weights) < math.inf:
            raise ValueError(f"Weights are 0 or more, and one of them is more: {self._weights!r}")

    async def __call__(self, output: Anything, attempt: Attempt | None = None) -> Evaluation:
        found = [(await self._found(number, output, attempt))[0] for number in range(len(self._evaluate))]
        if any(each.error is not None for each in found):
            return self._failed(found)
        total = sum(each.score * weight for each, weight in zip(found, self._weights, strict=True))
        return self._together(min(1.0, total / sum(self._weights)), None, found)


def _used(found: Sequence[Evaluation]) -> Usage:
    used = [each.usage for each in found if each.usage is not NO_USAGE]
    return sum(used, Usage()) if used else NO_USAGE


def _distinct(names: Sequence[str]) -> list[str]:
    """Two of a kind are told apart by a number."""
    return [
        name if names.count(name) == 1 else f"{name} {names[: at + 1].count(name)}" for at, name in enumerate(names)
    ]
