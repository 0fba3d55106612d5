"""From whatever an evaluator answers to an `Evaluation`; from whatever it raises, too."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from reflexio.agents.attempt import Attempt
from reflexio.agents.calling import FAILURES, Called, own, prepared
from reflexio.agents.values import Evaluation

Outcome = Evaluation | float | bool | tuple[float | bool, str] | None
"""What an evaluator may answer: None is a pass; a tuple is a score (or whether it passed) and feedback."""

Evaluator = Callable[..., Any]
"""`evaluate(output)` or `evaluate(output, attempt)`, plain or async, that answers with an `Outcome`."""

Evaluate = Callable[[Any, Attempt | None], Awaitable[Evaluation]]

DEFAULT_THRESHOLD = 0.8


def evaluating(evaluator: Evaluator | Sequence[Evaluator]) -> Evaluate:
    """The evaluator as one that always answers with an `Evaluation` and only ever raises when it is cancelled.

    An AssertionError is a verdict: its words are the feedback. Any other error is the evaluator's own.
    """
    if isinstance(evaluator, list | tuple):
        from reflexio.agents.evaluators.combined import All

        return evaluating(All(*evaluator))
    if not callable(evaluator):
        raise TypeError(f"evaluate={evaluator!r} cannot be called; give a function of the output.")
    return guarded(prepared(evaluator), name_of(evaluator))


def guarded(call: Called, name: str) -> Evaluate:
    async def evaluate(output: Any, attempt: Attempt | None) -> Evaluation:
        try:
            return read(await call(output, attempt), name)
        except AssertionError as verdict:
            return Evaluation(0.0, False, str(verdict) or "An assertion of the evaluator failed.", evaluator=name)
        except FAILURES as error:  # others wrote it; a finished answer must survive it
            return Evaluation(0.0, False, evaluator=name, error=described(own(error)))

    return evaluate


def read(outcome: Any, evaluator: str, feedback: str = "") -> Evaluation:
    match outcome:
        case Evaluation():
            return outcome if outcome.evaluator else replace(outcome, evaluator=evaluator)
        case bool():
            return Evaluation(float(outcome), outcome, feedback, evaluator=evaluator)
        case int() | float():
            return Evaluation(float(outcome), None, feedback, evaluator=evaluator)
        case None:
            return Evaluation(1.0, True, evaluator=evaluator)
        case (score, str(words)) if not feedback and not isinstance(score, Evaluation | None):
            return read(score, evaluator, words)
        case _ if hasattr(outcome, "item") and getattr(outcome, "ndim", 1) == 0:  # numpy's numbers and booleans
            return read(outcome.item(), evaluator, feedback)
        case _:
            raise TypeError(f"An evaluator answers with a score, a bool, (score, feedback) or None, not {outcome!r}.")


def name_of(evaluator: Evaluator) -> str:
    return str(getattr(evaluator, "name", None) or getattr(evaluator, "__name__", None) or type(evaluator).__name__)


def passes(evaluation: Evaluation, threshold: float) -> bool:
    if evaluation.error is not None:
        return False
    return evaluation.score >= threshold if evaluation.passed is None else evaluation.passed


def described(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
