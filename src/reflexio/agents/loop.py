"""The engine of in-run learning: attempt, evaluate, reflect, try again. Every door leads here.

Lessons travel with the attempt and through nothing that runs share. What a run has finished it never loses: an
evaluator, a reflector or a store that fails is reported, and the best output so far is kept.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeVar, assert_never

from reflexio.agents.attempt import Attempt, AttemptFailed, AttemptRecord
from reflexio.agents.evaluators.outcome import described, passes
from reflexio.agents.events import (
    AttemptDiscarded,
    AttemptStarted,
    Evaluated,
    LessonProduced,
    MaxAttemptsReached,
    Problem,
    Progress,
    ReflexionEvent,
    ReflexionResult,
    Role,
    Stopped,
    StopReason,
    ThresholdMet,
)
from reflexio.agents.meter import Meter
from reflexio.agents.notebook import Notebook
from reflexio.agents.plan import Output, Plan
from reflexio.agents.reflecting import lesson_of
from reflexio.agents.values import NO_USAGE, Evaluation, Lesson, Usage

T = TypeVar("T")

ONE_CALL = Usage(calls=1)


class OutOfTime(Exception):
    """The seconds of the budget were over while something was under way."""


@dataclass(frozen=True, slots=True)
class _Acted:
    """How the agent's part of an attempt ended. Without an output there is a verdict instead."""

    output: Any = None
    verdict: Evaluation | None = None

    @property
    def finished(self) -> bool:
        return self.verdict is None


class Run:
    """One run of a plan. `events` tells what happens; the last event holds the result."""

    def __init__(self, plan: Plan, meter: Meter) -> None:
        self.plan = plan
        self.meter = meter
        self.records: list[AttemptRecord] = []
        self.problems: list[str] = []
        self._notebook = Notebook(plan)
        self._stop: StopReason | None = None
        self._evaluating_spends = plan.evaluating_spends
        self._reflecting_spends = plan.reflecting_spends

    async def events(self) -> AsyncGenerator[ReflexionEvent, None]:
        for number in range(1, self.plan.max_attempts + 1):
            if self.meter.spent():
                self._stop = "budget"
                break
            if self.records:
                yield AttemptDiscarded(number - 1)
            async with aclosing(self._attempt(number)) as events:
                async for event in events:
                    yield event
            if self._stop:
                break
        yield Stopped(self._result())

    async def _attempt(self, number: int) -> AsyncGenerator[ReflexionEvent, None]:
        began = time.perf_counter()
        attempt = self._new_attempt(number)
        yield AttemptStarted(number, attempt.max_attempts, attempt.run_id, self.meter.left())
        store = self.plan.store
        if store is not None:
            for event in await self._asked_store(attempt, self._notebook.recall(store, attempt)):
                yield event
        acted = _Acted()
        async with aclosing(self._act(attempt)) as progress:
            async for step in progress:
                if isinstance(step, _Acted):
                    acted = step
                else:
                    yield step
        acting = time.perf_counter()
        evaluation = acted.verdict or await self._evaluate(acted.output, attempt)
        record = self._record(attempt, acted, evaluation)
        if acted.finished or evaluation.error is None:
            yield Evaluated(number, evaluation, record.passed, (time.perf_counter() - acting) * 1000)
        if evaluation.error is not None:
            yield self._problem(attempt, "evaluator" if acted.finished else "agent", evaluation.error)
        self.records.append(record)
        for event in self._decide(record):
            yield event
        if store is not None and attempt.lessons and evaluation.error is None:
            for event in await self._asked_store(attempt, self._notebook.credit(store, attempt, record.passed)):
                yield event
        lesson = None
        if self._is_to_learn_from(record):
            lesson, learned = await self._learn(attempt, record)
            for event in learned:
                yield event
        self.records[-1] = self._record(attempt, acted, evaluation, lesson, time.perf_counter() - began)

    def _new_attempt(self, number: int) -> Attempt:
        plan = self.plan
        return Attempt(
            plan.task,
            number=number,
            max_attempts=plan.max_attempts,
            lessons=self._notebook.own(),
            previous=tuple(self.records),
            threshold=plan.threshold,
            user_id=plan.user_id,
            run_id=plan.run_id,
            agent_version=plan.agent_version,
            meter=self.meter,
        )

    # Acting

    async def _act(self, attempt: Attempt) -> AsyncGenerator[ReflexionEvent | _Acted, None]:
        before = self.meter.usage
        try:
            if self.plan.streams:
                async with aclosing(self._streamed(attempt)) as steps:
                    async for step in steps:
                        yield step
            else:
                yield _Acted(await self._in_time(self.plan.act(self.plan.task, attempt)))
        except AttemptFailed as failed:
            yield _Acted(verdict=Evaluation(0.0, False, str(failed), evaluator="agent"))
        except OutOfTime:
            self._stop = "budget"
            yield _Acted(verdict=Evaluation(0.0, False, evaluator="agent", error="The time was over."))
        except Exception as error:  # the agent is not ours: without an earlier answer this is the caller's to see
            if not any(record.finished for record in self.records):
                raise
            self._stop = "agent_error"
            yield _Acted(verdict=Evaluation(0.0, False, evaluator="agent", error=described(error)))
        if self.meter.usage is before:
            self.meter.spend(ONE_CALL)

    async def _streamed(self, attempt: Attempt) -> AsyncGenerator[ReflexionEvent | _Acted, None]:
        answer: _Acted | None = None
        async with aclosing(self.plan.act(self.plan.task, attempt)) as steps:
            while True:
                try:
                    step = await self._in_time(anext(steps))
                except StopAsyncIteration:
                    break
                if isinstance(step, Output):
                    answer = _Acted(step.value)
                else:
                    yield Progress(attempt.number, step)
        if answer is None:
            raise TypeError("The agent is an async generator and ended without yielding an Output.")
        yield answer

    # Evaluating

    async def _evaluate(self, output: Any, attempt: Attempt) -> Evaluation:
        if self._is_spent(self._evaluating_spends):
            self._stop = "budget"
            return Evaluation(0.0, False, error="The budget was spent before this was evaluated.")
        try:
            evaluation = await self._in_time(self.plan.evaluate(output, attempt))
        except OutOfTime:
            self._stop = "budget"
            return Evaluation(0.0, False, error="The time was over before this was evaluated.")
        if evaluation.usage is not NO_USAGE:
            self._evaluating_spends = True
            self.meter.spend(evaluation.usage)
        return evaluation

    def _record(
        self,
        attempt: Attempt,
        acted: _Acted,
        evaluation: Evaluation,
        lesson: Lesson | None = None,
        seconds: float = 0.0,
    ) -> AttemptRecord:
        return AttemptRecord(
            attempt.number,
            acted.output,
            evaluation,
            passes(evaluation, self.plan.threshold),
            acted.finished,
            attempt.lessons,
            lesson,
            attempt.usage,
            seconds,
        )

    def _decide(self, record: AttemptRecord) -> list[ReflexionEvent]:
        """Whether this was the last attempt, and why."""
        if record.passed:
            self._stop = "passed"
            return [ThresholdMet(record.number, record.score)]
        if self._stop:
            return []
        if record.number >= self.plan.max_attempts:
            all_failed = all(each.evaluation.error is not None for each in self.records)
            self._stop = "evaluator_error" if all_failed else "max_attempts"
            best = self._best() or record
            return [MaxAttemptsReached(record.score, record.number, best.number, best.score)]
        if self._is_plateau():
            self._stop = "plateau"
        return []

    def _is_plateau(self) -> bool:
        """The best score has not risen for `patience` attempts."""
        patience = self.plan.patience
        if patience is None or len(self.records) <= patience:
            return False
        scores = [record.score for record in self.records]
        return max(scores[-patience:]) <= max(scores[:-patience])

    # Learning

    def _is_to_learn_from(self, record: AttemptRecord) -> bool:
        """An evaluator that failed without a word has shown nothing; the last attempt has nobody to tell."""
        if self.plan.reflect is None or self._stop in ("budget", "agent_error"):
            return False
        if record.evaluation.error is not None and not record.evaluation.feedback:
            return False
        match self.plan.learn_from:
            case "failures":
                return self._stop is None
            case "failures+final":
                return not record.passed
            case "all":
                return True
            case _:
                assert_never(self.plan.learn_from)

    async def _learn(self, attempt: Attempt, record: AttemptRecord) -> tuple[Lesson | None, Sequence[ReflexionEvent]]:
        assert self.plan.reflect is not None
        if self._is_spent(self._reflecting_spends):
            self._stop = self._stop or "budget"
            return None, ()
        before = self.meter.usage
        try:
            said = await self._in_time(self.plan.reflect(record, attempt))
            lesson = lesson_of(said, record, attempt)
        except OutOfTime:
            self._stop = self._stop or "budget"
            return None, ()
        except Exception as error:  # noqa: BLE001  one lesson fewer
            return None, [self._problem(attempt, "reflector", described(error))]
        finally:
            self._reflecting_spends = self._reflecting_spends or self.meter.usage is not before
        if lesson is None:
            return None, ()
        self._notebook.learned.append(lesson)
        produced = LessonProduced(record.number, lesson)
        if self.plan.store is None:
            return lesson, [produced]
        persisted = await self._asked_store(attempt, self._notebook.keep(self.plan.store, attempt, lesson))
        return self._notebook.learned[-1], [produced, *persisted]

    async def _asked_store(
        self, attempt: Attempt, work: Awaitable[ReflexionEvent | Sequence[ReflexionEvent]]
    ) -> Sequence[ReflexionEvent]:
        """A store that fails costs what it knows, and nothing else."""
        try:
            told = await self._in_time(work)
        except Exception as error:  # noqa: BLE001  others wrote it
            return [self._problem(attempt, "store", described(error))]
        return [told] if isinstance(told, ReflexionEvent) else told

    # Ending

    def _result(self) -> ReflexionResult:
        return ReflexionResult(
            self.plan.run_id,
            tuple(self.records),
            self._best(),
            self._stop or "max_attempts",
            self.meter.usage,
            tuple(self._notebook.learned),
            tuple(self.problems),
        )

    def _best(self) -> AttemptRecord | None:
        """Of equals the latest: it knew the most."""
        finished = [record for record in self.records if record.finished]
        if not finished:
            return None
        if self.plan.keep == "last":
            return finished[-1]
        return max(finished, key=lambda each: (each.passed, each.evaluation.error is None, each.score, each.number))

    # What all parts need

    def _problem(self, attempt: Attempt, role: Role, error: str) -> Problem:
        self.problems.append(f"attempt {attempt.number}, {role}: {error}")
        return Problem(attempt.number, role, error)

    def _is_spent(self, spends: bool) -> bool:
        """What costs nothing is stopped by the clock alone."""
        return bool(self.meter.spent()) if spends else self.meter.is_out_of_time()

    async def _in_time(self, work: Awaitable[T]) -> T:
        left = self.meter.seconds_left()
        if left is None:
            return await work
        try:
            async with asyncio.timeout(left) as limit:
                return await work
        except TimeoutError:
            if limit.expired():
                raise OutOfTime from None
            raise
