"""The engine of in-run learning: attempt, evaluate, reflect, try again. Every door leads here.

Lessons travel with the attempt and through nothing that runs share. What a run has finished it never loses: an
evaluator, a reflector or a store that fails is reported, and the best output so far is kept.
"""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Sequence
from typing import Any, assert_never

from reflexio.agents.attempt import Attempt, AttemptFailed, AttemptRecord
from reflexio.agents.calling import FAILURES, closing, own
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
from reflexio.agents.values import NO_USAGE, Evaluation, Usage, value

ONE_CALL = Usage(calls=1)
_END = object()


@value
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
        plan = self.plan
        while not self._is_over():
            if self.records:
                yield AttemptDiscarded(len(self.records))
            began = time.perf_counter()
            attempt = self._new_attempt()
            yield AttemptStarted(attempt.number, plan.max_attempts, plan.run_id, self.meter.left())
            for event in await self._recall(attempt):
                yield event
            if plan.streams:
                output: Output | None = None
                async with closing(plan.act(plan.task, attempt)) as steps:
                    while not isinstance(step := await self._step(steps, attempt, output), _Acted):
                        if isinstance(step, Output):
                            output = step
                        else:
                            yield Progress(attempt.number, step)
                acted = step
            else:
                acted = await self._act(attempt)
            for event in await self._judge(attempt, acted):
                yield event
            for part in (self._credit, self._learn):
                for event in await part(attempt):
                    yield event
            self._complete_record(attempt, time.perf_counter() - began)
        yield Stopped(self._result())

    def _is_over(self) -> bool:
        if self._stop is None and self.meter.spent():
            self._stop = "budget"
        return self._stop is not None

    def _new_attempt(self) -> Attempt:
        plan = self.plan
        return Attempt(
            plan.task,
            number=len(self.records) + 1,
            max_attempts=plan.max_attempts,
            lessons=self._notebook.own(),
            previous=tuple(self.records),
            threshold=plan.threshold,
            user_id=plan.user_id,
            run_id=plan.run_id,
            agent_version=plan.agent_version,
            meter=self.meter,
        )

    async def _recall(self, attempt: Attempt) -> Sequence[ReflexionEvent]:
        store = self.plan.store
        return () if store is None else await self._asked_store(attempt, self._notebook.recall(store, attempt))

    # Acting

    async def _act(self, attempt: Attempt) -> _Acted:
        try:
            return _Acted(await self.meter.in_time(self.plan.act(self.plan.task, attempt)))
        except FAILURES as error:  # the agent is not ours; without an earlier answer this raises it
            return self._failed(own(error))
        finally:
            self._count_at_least_one_call(attempt)

    async def _step(self, steps: AsyncIterator[Any], attempt: Attempt, output: Output | None) -> Any:
        """The next step of an agent that is an async generator, and in the end how it ended."""
        try:
            step = await self.meter.in_time(anext(steps, _END))
            if step is not _END:
                return step
            acted = _Acted(self.plan.answer() if output is None else output.value)
        except FAILURES as error:  # as above
            acted = self._failed(own(error))
        self._count_at_least_one_call(attempt)
        return acted

    def _failed(self, error: BaseException) -> _Acted:
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

    def _count_at_least_one_call(self, attempt: Attempt) -> None:
        if not attempt.has_spent:
            self.meter.spend(ONE_CALL)

    # Evaluating

    async def _judge(self, attempt: Attempt, acted: _Acted) -> list[ReflexionEvent]:
        began = time.perf_counter()
        evaluation = acted.verdict or await self._evaluate(acted.output, attempt)
        passed = passes(evaluation, self.plan.threshold)
        record = AttemptRecord(attempt.number, acted.output, evaluation, passed, acted.finished, attempt.lessons)
        self.records.append(record)
        told: list[ReflexionEvent] = []
        if acted.finished or evaluation.error is None:
            told.append(Evaluated(attempt.number, evaluation, passed, (time.perf_counter() - began) * 1000))
        if evaluation.error is not None:
            told.append(self._problem(attempt, "evaluator" if acted.finished else "agent", evaluation.error))
        told += self._decide(record)
        return told

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
        if self._stop in ("budget", "agent_error"):
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

    async def _credit(self, attempt: Attempt) -> Sequence[ReflexionEvent]:
        """Tells the store whether the lessons that it knows helped."""
        record, store = self.records[-1], self.plan.store
        if store is None or record.evaluation.error is not None:
            return ()
        ids = self._notebook.uncredited(attempt)
        return await self._asked_store(attempt, self._notebook.credit(store, ids, record.passed)) if ids else ()

    async def _learn(self, attempt: Attempt) -> Sequence[ReflexionEvent]:
        record, reflect = self.records[-1], self.plan.reflect
        if reflect is None or not self._is_to_learn_from(record):
            return ()
        if self._is_spent(self._reflecting_spends):
            self._stop = self._stop or "budget"
            return ()
        before = self.meter.usage
        try:
            said = await self.meter.in_time(reflect(record, attempt))
            lesson = lesson_of(said, record, attempt)
        except OutOfTime:
            self._stop = self._stop or "budget"
            return ()
        except FAILURES as error:  # one lesson fewer
            return [self._problem(attempt, "reflector", described(own(error)))]
        finally:
            self._reflecting_spends = self._reflecting_spends or self.meter.usage is not before
        if lesson is None:
            return ()
        self._notebook.learned.append(lesson)
        if self.plan.store is None:
            return [LessonProduced(record.number, lesson)]
        persisted = await self._asked_store(attempt, self._notebook.keep(self.plan.store, attempt, lesson))
        return [LessonProduced(record.number, self._notebook.learned[-1]), *persisted]

    async def _asked_store(
        self, attempt: Attempt, work: Awaitable[ReflexionEvent | Sequence[ReflexionEvent]]
    ) -> Sequence[ReflexionEvent]:
        """A store that fails costs what it knows, and nothing else."""
        try:
            told = await self.meter.in_time(work)
        except FAILURES as error:  # others wrote it
            return [self._problem(attempt, "store", described(own(error)))]
        return [told] if isinstance(told, ReflexionEvent) else told

    def _complete_record(self, attempt: Attempt, seconds: float) -> None:
        record = self.records[-1]
        self.records[-1] = AttemptRecord(
            record.number,
            record.output,
            record.evaluation,
            record.passed,
            record.finished,
            record.lessons,
            self._notebook.learned_from(attempt),
            attempt.usage,
            seconds,
        )

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
