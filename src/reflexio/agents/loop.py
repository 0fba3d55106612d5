"""The engine of in-run learning: attempt, evaluate, reflect, try again. Every door leads here.

Lessons travel with the attempt and through nothing that runs share. What a run has finished it never loses: an
evaluator, a reflector or a store that fails is reported, and the best output so far is kept.
"""

import time
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, assert_never

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
from reflexio.agents.meter import Meter, OutOfTime
from reflexio.agents.notebook import Notebook
from reflexio.agents.plan import Output, Plan
from reflexio.agents.reflecting import lesson_of
from reflexio.agents.values import NO_USAGE, Evaluation, Lesson, Usage

ONE_CALL = Usage(calls=1)


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
        if self.plan.streams:
            acted = _Acted()
            async with aclosing(self._follow(attempt)) as steps:
                async for step in steps:
                    if isinstance(step, _Acted):
                        acted = step
                    else:
                        yield step
        else:
            acted = await self._act(attempt)
        record, told = await self._judge(attempt, acted)
        for event in told:
            yield event
        if store is not None and attempt.lessons and record.evaluation.error is None:
            for event in await self._asked_store(attempt, self._notebook.credit(store, attempt, record.passed)):
                yield event
        lesson = None
        if self._is_to_learn_from(record):
            lesson, learned = await self._learn(attempt, record)
            for event in learned:
                yield event
        seconds = time.perf_counter() - began
        self.records[-1] = AttemptRecord(
            number,
            record.output,
            record.evaluation,
            record.passed,
            record.finished,
            record.lessons,
            lesson,
            attempt.usage,
            seconds,
        )

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

    async def _act(self, attempt: Attempt) -> _Acted:
        before = self.meter.usage
        try:
            return _Acted(await self.meter.in_time(self.plan.act(self.plan.task, attempt)))
        except Exception as error:  # noqa: BLE001  the agent is not ours; without an earlier answer this raises it
            return self._failed(error)
        finally:
            self._count_at_least_one_call(before)

    async def _follow(self, attempt: Attempt) -> AsyncGenerator[ReflexionEvent | _Acted, None]:
        """An agent that is an async generator, step by step."""
        before, acted = self.meter.usage, None
        try:
            async with aclosing(self.plan.act(self.plan.task, attempt)) as steps:
                while True:
                    try:
                        step = await self.meter.in_time(anext(steps))
                    except StopAsyncIteration:
                        break
                    if isinstance(step, Output):
                        acted = _Acted(step.value)
                    else:
                        yield Progress(attempt.number, step)
            if acted is None:
                raise TypeError("The agent is an async generator and ended without yielding an Output.")
        except Exception as error:  # noqa: BLE001  as above
            acted = self._failed(error)
        finally:
            self._count_at_least_one_call(before)
        yield acted

    def _failed(self, error: Exception) -> _Acted:
        """The verdict about an attempt that raised. What the caller has to see is raised again."""
        match error:
            case AttemptFailed():
                return _Acted(verdict=Evaluation(0.0, False, str(error), evaluator="agent"))
            case OutOfTime():
                self._stop = "budget"
                return _Acted(verdict=Evaluation(0.0, False, evaluator="agent", error="The time was over."))
            case _ if any(record.finished for record in self.records):
                self._stop = "agent_error"
                return _Acted(verdict=Evaluation(0.0, False, evaluator="agent", error=described(error)))
            case _:
                raise error

    def _count_at_least_one_call(self, before: Usage) -> None:
        if self.meter.usage is before:
            self.meter.spend(ONE_CALL)

    # Evaluating

    async def _judge(self, attempt: Attempt, acted: _Acted) -> tuple[AttemptRecord, list[ReflexionEvent]]:
        began = time.perf_counter()
        evaluation = acted.verdict or await self._evaluate(acted.output, attempt)
        passed = passes(evaluation, self.plan.threshold)
        record = AttemptRecord(attempt.number, acted.output, evaluation, passed, acted.finished, attempt.lessons)
        told: list[ReflexionEvent] = []
        if acted.finished or evaluation.error is None:
            told.append(Evaluated(attempt.number, evaluation, passed, (time.perf_counter() - began) * 1000))
        if evaluation.error is not None:
            told.append(self._problem(attempt, "evaluator" if acted.finished else "agent", evaluation.error))
        self.records.append(record)
        return record, [*told, *self._decide(record)]

    async def _evaluate(self, output: Any, attempt: Attempt) -> Evaluation:
        if self._is_spent(self._evaluating_spends):
            self._stop = "budget"
            return Evaluation(0.0, False, error="The budget was spent before this was evaluated.")
        try:
            evaluation = await self.meter.in_time(self.plan.evaluate(output, attempt))
        except OutOfTime:
            self._stop = "budget"
            return Evaluation(0.0, False, error="The time was over before this was evaluated.")
        if evaluation.usage != NO_USAGE:
            self._evaluating_spends = True
            self.meter.spend(evaluation.usage)
        return evaluation

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
            said = await self.meter.in_time(self.plan.reflect(record, attempt))
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
        if self.plan.store is None:
            return lesson, [LessonProduced(record.number, lesson)]
        persisted = await self._asked_store(attempt, self._notebook.keep(self.plan.store, attempt, lesson))
        kept = self._notebook.learned[-1]
        return kept, [LessonProduced(record.number, kept), *persisted]

    async def _asked_store(
        self, attempt: Attempt, work: Awaitable[ReflexionEvent | Sequence[ReflexionEvent]]
    ) -> Sequence[ReflexionEvent]:
        """A store that fails costs what it knows, and nothing else."""
        try:
            told = await self.meter.in_time(work)
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
