"""The events of a run, in the order in which they happen: small values with a name and a payload."""

from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Literal

from reflexio.agents.attempt import AttemptRecord, Evaluation, Lesson, value
from reflexio.agents.budget import Budget, Usage
from reflexio.agents.lessons.store import Recalled

StopReason = Literal["passed", "max_attempts", "budget", "plateau", "evaluator_error", "agent_error"]
Role = Literal["agent", "evaluator", "reflector", "store"]


@dataclass(frozen=True, slots=True)
class ReflexionResult:
    """How a run ended. `best` is the attempt that is kept; if no attempt finished, `output` is None.

    `lessons` were learned in this run. `problems` lists failures of evaluator, reflector, store and agent.
    """

    run_id: str
    attempts: tuple[AttemptRecord, ...]
    best: AttemptRecord | None
    stop_reason: StopReason
    usage: Usage
    lessons: tuple[Lesson, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def output(self) -> Any:
        return self.best.output if self.best else None

    @property
    def passed(self) -> bool:
        return self.best is not None and self.best.passed

    @property
    def score(self) -> float:
        return self.best.score if self.best else 0.0


@value
class ReflexionEvent:
    name: ClassVar[str] = ""

    def payload(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, **self.payload()}


@value
class AttemptStarted(ReflexionEvent):
    name: ClassVar[str] = "reflexion.attempt_started"
    attempt: int
    max_attempts: int
    run_id: str
    budget_left: Budget

    def payload(self) -> dict[str, Any]:
        return {**_pick(self, "attempt", "max_attempts", "run_id"), "budget_left": asdict(self.budget_left)}


@value
class LessonsRecalled(ReflexionEvent):
    """The hits of the store; lessons of this run are shown as well and not counted here."""

    name: ClassVar[str] = "reflexion.lessons_recalled"
    attempt: int
    recalled: tuple[Recalled, ...]
    ms: float

    def payload(self) -> dict[str, Any]:
        hits = self.recalled
        return {
            "attempt": self.attempt,
            "n_recalled": len(hits),
            "lessons": [_pick(hit.lesson, "id", "content", "scope") | {"similarity": hit.similarity} for hit in hits],
            "chars": sum(len(hit.lesson.content) for hit in hits),
            "ms": self.ms,
        }


@value
class Progress(ReflexionEvent):
    """A value that an agent which is an async generator yielded before its answer."""

    name: ClassVar[str] = "reflexion.progress"
    attempt: int
    value: Any


@value
class AttemptEvaluated(ReflexionEvent):
    name: ClassVar[str] = "reflexion.evaluated"
    attempt: int
    evaluation: Evaluation
    passed: bool
    ms: float

    def payload(self) -> dict[str, Any]:
        return {
            **_pick(self.evaluation, "score", "feedback", "evaluator", "error"),
            **_pick(self, "attempt", "passed", "ms"),
            "criteria": dict(self.evaluation.criteria),
            "usage": asdict(self.evaluation.usage),
        }


@value
class ThresholdMet(ReflexionEvent):
    name: ClassVar[str] = "reflexion.threshold_met"
    attempt: int
    score: float


@value
class MaxAttemptsReached(ReflexionEvent):
    name: ClassVar[str] = "reflexion.max_attempts_reached"
    final_score: float
    attempts: int
    best_attempt: int
    best_score: float


@value
class LessonProduced(ReflexionEvent):
    name: ClassVar[str] = "reflexion.lesson_produced"
    attempt: int
    lesson: Lesson

    def payload(self) -> dict[str, Any]:
        lesson = self.lesson
        return {"attempt": self.attempt, "lesson": lesson.content, **_pick(lesson, "id", "trigger", "rationale")}


@value
class LessonPersisted(ReflexionEvent):
    """`block` is the working block or "lesson_store"; `merged` says that the lesson repeats a stored one."""

    name: ClassVar[str] = "reflexion.lesson_persisted"
    attempt: int
    block: str
    id: str
    merged: bool

    def payload(self) -> dict[str, Any]:
        return {**_pick(self, "attempt", "block", "id", "merged"), "target": self.block}


@value
class LessonOutcome(ReflexionEvent):
    """Whether the first attempt that was shown a stored lesson passed."""

    name: ClassVar[str] = "reflexion.lesson_outcome"
    id: str
    outcome: Literal["helped", "hurt"]


@value
class AttemptDiscarded(ReflexionEvent):
    """Another attempt follows: a program that displayed the output of this one should remove it."""

    name: ClassVar[str] = "reflexion.attempt_discarded"
    attempt: int


@value
class Problem(ReflexionEvent):
    """A part of the run failed; the run continues."""

    name: ClassVar[str] = "reflexion.problem"
    attempt: int
    role: Role
    error: str


@value
class Stopped(ReflexionEvent):
    """The last event of every run that comes to a result."""

    name: ClassVar[str] = "reflexion.stopped"
    result: ReflexionResult

    def payload(self) -> dict[str, Any]:
        best = self.result.best
        return {
            "reason": self.result.stop_reason,
            "attempts": len(self.result.attempts),
            "best_attempt": best.number if best else 0,
            "problems": list(self.result.problems),
        }


def _pick(record: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}
