"""What happens in a run, told while it happens: small values with a name and a payload."""

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

from reflexio.agents.attempt import AttemptRecord
from reflexio.agents.stores import Recalled
from reflexio.agents.values import Budget, Evaluation, Lesson, Usage, value

StopReason = Literal["passed", "max_attempts", "budget", "plateau", "evaluator_error", "agent_error"]
Role = Literal["agent", "evaluator", "reflector", "store"]


@dataclass(frozen=True, slots=True)
class ReflexionResult:
    """How a run ended. `best` is the attempt that is kept; without one that finished, `output` is None.

    `lessons` are those learned in this run. `problems` says what failed beside the agent: evaluator, reflector, store.
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
        return as_dict(self)

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
        return {
            "attempt": self.attempt,
            "max_attempts": self.max_attempts,
            "run_id": self.run_id,
            "budget_left": as_dict(self.budget_left),
        }


@value
class LessonsRecalled(ReflexionEvent):
    """What the store found; lessons of this very run are carried along and not counted."""

    name: ClassVar[str] = "reflexion.lessons_recalled"
    attempt: int
    recalled: tuple[Recalled, ...]
    ms: float

    def payload(self) -> dict[str, Any]:
        found = [(each.lesson, each.similarity) for each in self.recalled]
        return {
            "attempt": self.attempt,
            "n_recalled": len(found),
            "lessons": [
                {"id": lesson.id, "content": lesson.content, "similarity": similarity, "scope": lesson.scope}
                for lesson, similarity in found
            ],
            "chars": sum(len(lesson.content) for lesson, _ in found),
            "ms": self.ms,
        }


@value
class Progress(ReflexionEvent):
    """Something that an agent which is an async generator yielded on its way."""

    name: ClassVar[str] = "reflexion.progress"
    attempt: int
    value: Any


@value
class Evaluated(ReflexionEvent):
    name: ClassVar[str] = "reflexion.evaluated"
    attempt: int
    evaluation: Evaluation
    passed: bool
    ms: float

    def payload(self) -> dict[str, Any]:
        found = self.evaluation
        return {
            "attempt": self.attempt,
            "score": found.score,
            "passed": self.passed,
            "feedback": found.feedback,
            "criteria": dict(found.criteria),
            "evaluator": found.evaluator,
            "usage": as_dict(found.usage),
            "ms": self.ms,
            "error": found.error,
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
        return {
            "attempt": self.attempt,
            "lesson": lesson.content,
            "id": lesson.id,
            "trigger": lesson.trigger,
            "rationale": lesson.rationale,
        }


@value
class LessonPersisted(ReflexionEvent):
    """`block` is the working block or "lesson_store"; `merged` says that a near-repeat was there already."""

    name: ClassVar[str] = "reflexion.lesson_persisted"
    attempt: int
    block: str
    id: str
    merged: bool

    def payload(self) -> dict[str, Any]:
        return {**as_dict(self), "target": self.block}


@value
class LessonOutcome(ReflexionEvent):
    """Whether the first attempt that was shown a stored lesson passed."""

    name: ClassVar[str] = "reflexion.lesson_outcome"
    id: str
    outcome: Literal["helped", "hurt"]


@value
class AttemptDiscarded(ReflexionEvent):
    """Another attempt follows: who showed this one's output while it came should take it back."""

    name: ClassVar[str] = "reflexion.attempt_discarded"
    attempt: int


@value
class Problem(ReflexionEvent):
    """Something beside the agent failed; the run goes on."""

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


def as_dict(value: "ReflexionEvent | Budget | Usage") -> dict[str, Any]:
    return {each.name: getattr(value, each.name) for each in fields(value)}
