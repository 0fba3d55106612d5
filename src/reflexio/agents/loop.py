"""The engine of in-run learning: attempt, evaluate, reflect, try again. Every door leads here.

Lessons travel with the attempt and through nothing that runs share. What a run has finished it never loses: an
evaluator, a reflector or a store that fails is reported, and the best output so far is kept.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar, assert_never

from reflexio.agents.attempt import Attempt, AttemptFailed, AttemptRecord
from reflexio.agents.calling import Called
from reflexio.agents.evaluators.outcome import Evaluate, described, passes
from reflexio.agents.events import (
    AttemptDiscarded,
    AttemptStarted,
    Evaluated,
    LessonOutcome,
    LessonPersisted,
    LessonProduced,
    LessonsRecalled,
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
from reflexio.agents.reflecting import lesson_of
from reflexio.agents.stores import LessonStore
from reflexio.agents.values import NO_USAGE, Evaluation, Lesson, Usage

T = TypeVar("T")
Keep = Literal["best", "last"]
LearnFrom = Literal["failures", "failures+final", "all"]

ONE_CALL = Usage(calls=1)


class OutOfTime(Exception):
    """The seconds of the budget were over while something was under way."""


@dataclass(frozen=True, slots=True)
class Output:
    """What an agent that is an async generator yields as its answer; all else it yields is progress."""

    value: Any


@dataclass(frozen=True, slots=True)
class Plan:
    """How a run goes about it. Made once; a run never changes it."""

    act: Callable[[Any, Attempt], Any]
    evaluate: Evaluate
    reflect: Called | None
    task: Any
    run_id: str
    streams: bool = False
    evaluating_spends: bool = False
    reflecting_spends: bool = False
    store: LessonStore | None = None
    max_attempts: int = 3
    threshold: float = 0.8
    top_k: int = 5
    min_similarity: float | None = None
    keep: Keep = "best"
    patience: int | None = None
    learn_from: LearnFrom = "failures"
    user_id: str | None = None
    agent_version: str = ""


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
        self.learned: list[Lesson] = []
        self.problems: list[str] = []
        self._began = datetime.now(UTC)
        self._credited: set[str] = set()
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
        if self.plan.store is not None:
            yield await self._recall(self.plan.store, attempt)
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
        for outcome in await self._credit(attempt, record):
            yield outcome
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
            lessons=_without_repetitions(self.learned)[-plan.top_k :],
            previous=tuple(self.records),
            threshold=plan.threshold,
            user_id=plan.user_id,
            run_id=plan.run_id,
            agent_version=plan.agent_version,
            meter=self.meter,
        )

    # Recalling

    async def _recall(self, store: LessonStore, attempt: Attempt) -> ReflexionEvent:
        plan, began = self.plan, time.perf_counter()
        question = store.recall(
            str(plan.task),
            k=plan.top_k,
            user_id=plan.user_id,
            agent_version=plan.agent_version,
            min_similarity=plan.min_similarity,
        )
        try:
            found = [each for each in await self._in_time(question) if self._is_known_since_before(each.lesson)]
        except Exception as error:  # noqa: BLE001  a store that fails costs the lessons, not the attempt
            return self._problem(attempt, "store", described(error))
        found = found[: plan.top_k]
        # What matters most stands last: the nearest lesson, and after it what this run has learned itself.
        attempt.lessons = _without_repetitions(
            [*(each.lesson for each in reversed(found)), *attempt.lessons], prefer_first=True
        )[-plan.top_k :]
        return LessonsRecalled(attempt.number, tuple(found), (time.perf_counter() - began) * 1000)

    def _is_known_since_before(self, lesson: Lesson) -> bool:
        """Lessons that other runs save while this one is under way are for the next one."""
        is_new = lesson.created_at is not None and lesson.created_at >= self._began
        return not is_new or lesson.run_id in ("", self.plan.run_id)

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

    async def _credit(self, attempt: Attempt, record: AttemptRecord) -> list[ReflexionEvent]:
        """A lesson helped when the first attempt that was shown it passed."""
        store = self.plan.store
        if store is None or record.evaluation.error is not None:
            return []
        ids = [each.id for each in attempt.lessons if each.id and each.id not in self._credited]
        if not ids:
            return []
        self._credited.update(ids)
        try:
            await self._in_time(store.outcome(self.plan.run_id, ids, record.passed))
        except Exception as error:  # noqa: BLE001  what a lesson was worth is lost, nothing else
            return [self._problem(attempt, "store", described(error))]
        return [LessonOutcome(each, "helped" if record.passed else "hurt") for each in ids]

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
        kept, persisted = await self._persist(attempt, lesson)
        self.learned.append(kept)
        return kept, [LessonProduced(record.number, lesson), *persisted]

    async def _persist(self, attempt: Attempt, lesson: Lesson) -> tuple[Lesson, list[ReflexionEvent]]:
        store = self.plan.store
        if store is None:
            return lesson, []
        try:
            (saved,) = await self._in_time(store.save([lesson]))
        except Exception as error:  # noqa: BLE001  the lesson serves this run all the same
            return lesson, [self._problem(attempt, "store", described(error))]
        where = saved.merged_into or saved.id
        kept = replace(lesson, id=where) if where else lesson
        place = str(getattr(store, "place", "lesson_store"))
        return kept, [LessonPersisted(attempt.number, place, kept.id, saved.merged_into is not None)]

    # Ending

    def _result(self) -> ReflexionResult:
        return ReflexionResult(
            self.plan.run_id,
            tuple(self.records),
            self._best(),
            self._stop or "max_attempts",
            self.meter.usage,
            tuple(self.learned),
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


def _without_repetitions(lessons: Sequence[Lesson], *, prefer_first: bool = False) -> tuple[Lesson, ...]:
    """Each content once, where it was said last; the lesson that came from a store first knows its id."""
    kept: dict[str, Lesson] = {}
    for lesson in lessons:
        known = kept.pop(lesson.content, None)
        kept[lesson.content] = known if prefer_first and known is not None else lesson
    return tuple(kept.values())
