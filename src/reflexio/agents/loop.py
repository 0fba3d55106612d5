"""The loop of in-run learning: attempt, evaluate, reflect, try again. `api.py` and the Reflexion architecture run it.

Concurrent runs share nothing but their store. A run never loses a finished output: a failure of an evaluator, a
reflector or a store is reported, and the best output so far is kept.
"""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from inspect import signature
from typing import Any, Literal, NoReturn, TypeAlias, assert_never

from reflexio.agents.attempt import Attempt, AttemptFailed, AttemptRecord, Evaluation, Lesson, shorten, value
from reflexio.agents.budget import NO_USAGE, Meter, OutOfBudget, OutOfTime, Usage
from reflexio.agents.calls import FAILURES, AsyncCall, closing, describe, unless_cancelled
from reflexio.agents.evaluators.evaluation import Evaluate, is_passed
from reflexio.agents.events import (
    AttemptDiscarded,
    AttemptEvaluated,
    AttemptStarted,
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
from reflexio.agents.lessons.correction import conflict, correction
from reflexio.agents.lessons.store import LessonStore
from reflexio.language.words import content_words

Keep = Literal["best", "last"]
LearnFrom = Literal["failures", "failures+final", "all"]
Events: TypeAlias = Sequence[ReflexionEvent]

ONE_CALL = Usage(calls=1)
EMPTY_LESSON = Lesson("")
_END = object()


@value
class Output:
    """The answer of an agent that is an async generator; everything else that it yields is progress."""

    value: Any


def no_answer() -> NoReturn:
    raise TypeError("The agent is an async generator and ended without yielding an Output.")


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The parts of a run, and the rules by which it continues and stops.

    `streams` says that `act` is an async generator; if it yields no `Output`, `answer` is called at its end.
    An evaluator or reflector that does not spend is called as long as there is time, even if the budget is used up.
    """

    act: Callable[[Any, Attempt], Any]
    evaluate: Evaluate
    reflect: AsyncCall | None
    task: Any
    run_id: str
    streams: bool = False
    answer: Callable[[], Any] = no_answer
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


@value
class _AgentAnswer:
    """How the agent's part of an attempt ended: with an output, or with the evaluation of its failure."""

    output: Any = None
    failure: Evaluation | None = None


class ReflexionLoop:
    """One run of a plan. `events` reports what happens; the last event holds the result."""

    def __init__(self, plan: RunPlan, meter: Meter) -> None:
        self.plan = plan
        self.meter = meter
        self.records: list[AttemptRecord] = []
        self.problems: list[str] = []
        self._lessons = RunLessons(plan)
        self._stop: StopReason | None = None
        self._evaluating_spends = plan.evaluating_spends
        self._reflecting_spends = plan.reflecting_spends

    async def events(self) -> AsyncGenerator[ReflexionEvent, None]:
        plan = self.plan
        while self._stop is None and not self.meter.reached_limit():
            if self.records:
                yield AttemptDiscarded(len(self.records))
            started = time.perf_counter()
            attempt = self._new_attempt()
            yield AttemptStarted(attempt.number, plan.max_attempts, plan.run_id, self.meter.remaining())
            for event in await self._recall(attempt):
                yield event
            if plan.streams:
                output: Output | None = None
                async with closing(plan.act(plan.task, attempt)) as steps:
                    while not isinstance(step := await self._step(steps, attempt, output), _AgentAnswer):
                        if isinstance(step, Output):
                            output = step
                        else:
                            yield Progress(attempt.number, step)
                answer = step
            else:
                answer = await self._act(attempt)
            for event in await self._evaluate(attempt, answer):
                yield event
            for event in await self._credit(attempt):
                yield event
            for event in await self._learn(attempt):
                yield event
            self._complete_record(attempt, time.perf_counter() - started)
        yield Stopped(self._result())

    def _new_attempt(self) -> Attempt:
        plan = self.plan
        return Attempt(
            plan.task,
            number=len(self.records) + 1,
            max_attempts=plan.max_attempts,
            lessons=self._lessons.latest(),
            previous=tuple(self.records),
            threshold=plan.threshold,
            user_id=plan.user_id,
            run_id=plan.run_id,
            agent_version=plan.agent_version,
            meter=self.meter,
        )

    # Acting

    async def _act(self, attempt: Attempt) -> _AgentAnswer:
        try:
            return _AgentAnswer(await self.meter.within_time(self.plan.act(self.plan.task, attempt)))
        except FAILURES as error:
            return self._failed(unless_cancelled(error))
        finally:
            self._count_at_least_one_call(attempt)

    async def _step(self, steps: AsyncIterator[Any], attempt: Attempt, output: Output | None) -> Any:
        """The next step of an agent that is an async generator, and after the last one its answer."""
        try:
            step = await self.meter.within_time(anext(steps, _END))
            if step is not _END:
                return step
            answer = _AgentAnswer(self.plan.answer() if output is None else output.value)
        except FAILURES as error:
            answer = self._failed(unless_cancelled(error))
        self._count_at_least_one_call(attempt)
        return answer

    def _failed(self, error: BaseException) -> _AgentAnswer:
        """The evaluation of an attempt that raised. Without an earlier output, the caller gets the error."""
        if isinstance(error, AttemptFailed):
            return _AgentAnswer(failure=Evaluation(0.0, False, str(error), evaluator="agent"))
        if isinstance(error, OutOfBudget):
            self._stop, message = "budget", str(error) or "The time was over."
        elif any(record.finished for record in self.records):
            self._stop, message = "agent_error", describe(error)
        else:
            raise error
        return _AgentAnswer(failure=Evaluation(0.0, False, evaluator="agent", error=message))

    def _count_at_least_one_call(self, attempt: Attempt) -> None:
        if not attempt.has_spent:
            self.meter.spend(ONE_CALL)

    # Evaluating

    async def _evaluate(self, attempt: Attempt, answer: _AgentAnswer) -> Events:
        started, finished = time.perf_counter(), answer.failure is None
        evaluation = answer.failure or await self._ask_evaluator(answer.output, attempt)
        passed = is_passed(evaluation, self.plan.threshold)
        record = AttemptRecord(
            attempt.number, answer.output, evaluation, passed, finished, attempt.lessons, steps=tuple(attempt.steps)
        )
        self.records.append(record)
        events: list[ReflexionEvent] = []
        if finished or evaluation.error is None:
            events.append(AttemptEvaluated(attempt.number, evaluation, passed, (time.perf_counter() - started) * 1000))
        if evaluation.error is not None:
            events.append(self._problem(attempt, "evaluator" if finished else "agent", evaluation.error))
        events += self._decide(record)
        return events

    async def _ask_evaluator(self, output: Any, attempt: Attempt) -> Evaluation:
        if self._is_spent(self._evaluating_spends):
            self._stop = "budget"
            return Evaluation(0.0, False, error="The budget was spent before this was evaluated.")
        try:
            evaluation = await self.meter.within_time(self.plan.evaluate(output, attempt))
        except OutOfTime:
            self._stop = "budget"
            return Evaluation(0.0, False, error="The time was over before this was evaluated.")
        if evaluation.usage != NO_USAGE:
            self._evaluating_spends = True
            self.meter.spend(evaluation.usage)
        return evaluation

    def _decide(self, record: AttemptRecord) -> Events:
        """Decides whether this was the last attempt, and why."""
        if record.passed:
            self._stop = "passed"
            return [ThresholdMet(record.number, record.score)]
        if self._stop:
            return ()
        if record.number >= self.plan.max_attempts:
            all_failed = all(past.evaluation.error is not None for past in self.records)
            self._stop = "evaluator_error" if all_failed else "max_attempts"
            best = self._best() or record
            return [MaxAttemptsReached(record.score, record.number, best.number, best.score)]
        patience, scores = self.plan.patience, [record.score for record in self.records]
        if patience is not None and len(scores) > patience and max(scores[-patience:]) <= max(scores[:-patience]):
            self._stop = "plateau"
        return ()

    # Lessons

    async def _recall(self, attempt: Attempt) -> Events:
        store = self.plan.store
        return () if store is None else await self._with_store(attempt, self._lessons.recall(store, attempt))

    async def _credit(self, attempt: Attempt) -> Events:
        """Tells the store whether its lessons helped."""
        record, store = self.records[-1], self.plan.store
        if store is None or record.evaluation.error is not None:
            return ()
        return await self._with_store(attempt, self._lessons.credit(store, attempt, record))

    async def _learn(self, attempt: Attempt) -> Events:
        record, reflect = self.records[-1], self.plan.reflect
        if reflect is None or not self._teaches(record):
            return ()
        if self._is_spent(self._reflecting_spends):
            self._stop = self._stop or "budget"
            return ()
        usage_before = self.meter.usage
        try:
            lesson = to_lesson(await self.meter.within_time(reflect(record, attempt)), record, attempt)
        except OutOfTime:
            self._stop = self._stop or "budget"
            return ()
        except FAILURES as error:  # costs only this lesson
            return [self._problem(attempt, "reflector", describe(unless_cancelled(error)))]
        finally:
            self._reflecting_spends = self._reflecting_spends or self.meter.usage is not usage_before
        if lesson is None:
            return ()
        self._lessons.learn(lesson)
        if self.plan.store is None:
            return [LessonProduced(record.number, lesson)]
        persisted = await self._with_store(attempt, self._lessons.save(self.plan.store, attempt, lesson))
        return [LessonProduced(record.number, self._lessons.learned[-1]), *persisted]

    def _teaches(self, record: AttemptRecord) -> bool:
        """An evaluator that failed without feedback teaches nothing; after the last attempt nobody needs a lesson."""
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

    async def _with_store(self, attempt: Attempt, work: Awaitable[Events]) -> Events:
        """The events of the store's work; a store that fails costs only its own lessons."""
        try:
            return await self.meter.within_time(work)
        except FAILURES as error:
            return [self._problem(attempt, "store", describe(unless_cancelled(error)))]

    # Ending

    def _complete_record(self, attempt: Attempt, seconds: float) -> None:
        record = self.records[-1]
        # Not `replace`, which takes a tenth of the time of an attempt; nor in `to_lesson`.
        known = record.number, record.output, record.evaluation, record.passed, record.finished, record.lessons
        learned = self._lessons.learned_from(attempt)
        self.records[-1] = AttemptRecord(*known, learned, attempt.usage, seconds, record.steps)

    def _result(self) -> ReflexionResult:
        best, stop_reason, usage = self._best(), self._stop or "budget", self.meter.usage
        learned, problems = tuple(self._lessons.learned), tuple(self.problems)
        return ReflexionResult(self.plan.run_id, tuple(self.records), best, stop_reason, usage, learned, problems)

    def _best(self) -> AttemptRecord | None:
        """Among equals, the latest: it knew the most lessons."""
        finished = [record for record in self.records if record.finished]
        if not finished or self.plan.keep == "last":
            return finished[-1] if finished else None
        return max(
            finished, key=lambda record: (record.passed, record.evaluation.error is None, record.score, record.number)
        )

    def _problem(self, attempt: Attempt, role: Role, error: str) -> Problem:
        self.problems.append(f"attempt {attempt.number}, {role}: {error}")
        return Problem(attempt.number, role, error)

    def _is_spent(self, spends: bool) -> bool:
        """Only the clock stops what costs nothing."""
        return bool(self.meter.reached_limit()) if spends else self.meter.is_out_of_time()


class RunLessons:
    """The lessons of one run: those that a store recalls, and those that the run learns. Errors are the store's."""

    def __init__(self, plan: RunPlan) -> None:
        self.learned: list[Lesson] = []
        self._shown: list[Lesson] = []
        self._plan = plan
        self._started = datetime.now(UTC)
        self._credited: set[str] = set()
        self._period: dict[str, Any] | None = None

    def learn(self, lesson: Lesson) -> None:
        """Adds the latest lesson; those of this run that it corrects are no longer shown."""
        self._shown = [*without_corrected(self._shown, lesson), lesson]
        self.learned.append(lesson)

    def latest(self) -> tuple[Lesson, ...]:
        return _distinct(self._shown)[-self._plan.top_k :]

    def learned_from(self, attempt: Attempt) -> Lesson | None:
        return self.learned[-1] if self.learned and self.learned[-1].attempt == attempt.number else None

    async def recall(self, store: LessonStore, attempt: Attempt) -> Events:
        """Puts the store's lessons about the task into the attempt, before the lessons of this run."""
        plan, started = self._plan, time.perf_counter()
        hits = await store.recall(
            str(plan.task),
            k=plan.top_k,
            user_id=plan.user_id,
            agent_version=plan.agent_version,
            min_similarity=plan.min_similarity,
            **self._period_for(store),
        )
        hits = [hit for hit in hits if self._is_older_than_run(hit.lesson)][: plan.top_k]
        if hits:
            # The most important come last: the nearest lesson, and after it those of this run.
            attempt.lessons = _distinct([*(hit.lesson for hit in reversed(hits)), *attempt.lessons])[-plan.top_k :]
        return [LessonsRecalled(attempt.number, tuple(hits), (time.perf_counter() - started) * 1000)]

    async def save(self, store: LessonStore, attempt: Attempt, lesson: Lesson) -> Events:
        """Saves the latest lesson, which then has an id."""
        (saved,) = await store.save([lesson])
        lesson_id = saved.merged_into or saved.id
        if lesson_id:
            self.learned[-1] = self._shown[-1] = replace(lesson, id=lesson_id)
        place = str(getattr(store, "place", "lesson_store"))
        return [LessonPersisted(attempt.number, place, lesson_id, saved.merged_into is not None)]

    async def credit(self, store: LessonStore, attempt: Attempt, record: AttemptRecord) -> Events:
        """A stored lesson helped when the first attempt that was shown it passed, and hurt if it bears on a failure."""
        shown = [lesson for lesson in attempt.lessons if lesson.id and lesson.id not in self._credited]
        self._credited.update([lesson.id for lesson in shown])
        feedback = record.evaluation.feedback
        ids = [lesson.id for lesson in shown if record.passed or bears_on(lesson, feedback)]
        if not ids:
            return ()
        await store.outcome(self._plan.run_id, ids, record.passed)
        return [LessonOutcome(lesson_id, "helped" if record.passed else "hurt") for lesson_id in ids]

    def _period_for(self, store: LessonStore) -> dict[str, Any]:
        if self._period is None:
            known = {"learned_before": self._started, "run_id": self._plan.run_id}
            self._period = known if known.keys() <= signature(store.recall).parameters.keys() else {}
        return self._period

    def _is_older_than_run(self, lesson: Lesson) -> bool:
        """Lessons that concurrent runs save are for the runs after this one."""
        is_new = lesson.created_at is not None and lesson.created_at >= self._started
        return not is_new or lesson.run_id in ("", self._plan.run_id)


def _distinct(lessons: Sequence[Lesson]) -> tuple[Lesson, ...]:
    """Each content once, at its last position; lessons from a store come first in the list and have an id."""
    if len(lessons) < 2:
        return tuple(lessons)
    kept: dict[str, Lesson] = {}
    for lesson in lessons:
        known = kept.pop(lesson.content, lesson)
        kept[lesson.content] = known if known.id else lesson
    return tuple(kept.values())


def bears_on(lesson: Lesson, feedback: str) -> bool:
    """Whether a failure may be due to the lesson: the evaluator names something that its advice is about.

    Without feedback nothing is known, and every lesson that was shown is counted.
    """
    named = {word for word in content_words(feedback) if word.isalpha()}
    return not named or bool(named & content_words(lesson.content)) or bool(conflict(feedback, lesson.content))


def without_corrected(lessons: Sequence[Lesson], newest: Lesson) -> list[Lesson]:
    """The lessons that the newest one does not correct: two opposite orders help no attempt."""
    return [lesson for lesson in lessons if not correction(newest.content, lesson.content)]


def to_lesson(answer: Any, record: AttemptRecord, attempt: Attempt) -> Lesson | None:
    """The answer of a reflector as a lesson with its provenance. An empty answer is no lesson."""
    if answer is None:
        return None
    if not isinstance(answer, str | Lesson):
        raise TypeError(f"A reflector answers with a sentence, a Lesson or None, not {answer!r}.")
    lesson = EMPTY_LESSON if isinstance(answer, str) else answer
    content = shorten((answer if isinstance(answer, str) else answer.content).strip())
    if not content:
        return None
    return Lesson(
        content,
        trigger=lesson.trigger or shorten(str(attempt.task)),
        rationale=lesson.rationale or shorten(record.evaluation.feedback),
        id=lesson.id,
        user_id=attempt.user_id if lesson.user_id is None else lesson.user_id,
        scope=lesson.scope,
        agent_version=lesson.agent_version or attempt.agent_version,
        run_id=attempt.run_id,
        attempt=record.number,
        score=record.score,
        created_at=lesson.created_at or datetime.now(UTC),
        source=lesson.source,
    )
