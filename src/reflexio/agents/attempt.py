"""One attempt: what an agent is handed, and what is remembered of it."""

from typing import Any

from reflexio.agents.bullets import bullet, escaped, fitting, one_line, shortened
from reflexio.agents.meter import Meter
from reflexio.agents.values import NO_USAGE, Budget, Evaluation, Lesson, Usage, value

LONGEST_CASE = 200
INTRODUCTION = "Earlier attempts taught this. Use whatever applies to the task at hand."
FRAME = f"<lessons>\n{INTRODUCTION}\n{{}}\n</lessons>"


class AttemptFailed(Exception):
    """Raised by an agent that knows that its attempt failed, for instance because a guardrail stopped it.

    The message is the feedback that the next attempt learns from.
    """


@value
class AttemptRecord:
    """What came of an attempt. `finished` is False when it ended without an output.

    `lessons` are those it was shown, `lesson` is the one that was learned from it.
    """

    number: int
    output: Any
    evaluation: Evaluation
    passed: bool
    finished: bool = True
    lessons: tuple[Lesson, ...] = ()
    lesson: Lesson | None = None
    usage: Usage = NO_USAGE
    seconds: float = 0.0

    @property
    def score(self) -> float:
        return self.evaluation.score


class Attempt:
    """What the agent is handed beside the task. `text()` is ready to be put into a system prompt.

    `meter` counts what the whole run spends; `spend` adds to it.
    """

    __slots__ = (
        "_at_start",
        "agent_version",
        "lessons",
        "max_attempts",
        "meter",
        "number",
        "previous",
        "run_id",
        "task",
        "threshold",
        "user_id",
    )

    def __init__(
        self,
        task: Any,
        *,
        number: int = 1,
        max_attempts: int = 1,
        lessons: tuple[Lesson, ...] = (),
        previous: tuple[AttemptRecord, ...] = (),
        threshold: float = 0.8,
        user_id: str | None = None,
        run_id: str = "",
        agent_version: str = "",
        meter: Meter | None = None,
    ) -> None:
        self.task = task
        self.number = number
        self.max_attempts = max_attempts
        self.lessons = lessons
        self.previous = previous
        self.threshold = threshold
        self.user_id = user_id
        self.run_id = run_id
        self.agent_version = agent_version
        self.meter = Meter() if meter is None else meter
        self._at_start = self.meter.usage

    @property
    def is_last(self) -> bool:
        return self.number >= self.max_attempts

    @property
    def budget_left(self) -> Budget:
        return self.meter.left()

    @property
    def usage(self) -> Usage:
        """What was spent since this attempt began."""
        return self.meter.usage - self._at_start

    @property
    def has_spent(self) -> bool:
        return self.meter.usage is not self._at_start

    def spend(self, usage: Usage) -> None:
        """Report what a call cost; an agent that reports nothing counts as one call."""
        self.meter.spend(usage)

    def text(self, *, max_chars: int = 4_000) -> str:
        """The lessons for a prompt: escaped, one a line, within `max_chars`. Empty when there are none."""
        bullets = [bullet(escaped(_worded(each, self.task))) for each in self.lessons]
        shown = fitting(bullets, max_chars - len(FRAME))
        return FRAME.format("\n".join(shown)) if shown else ""

    def messages(self) -> list[dict[str, str]]:
        """The same as a system message, or no message at all."""
        text = self.text()
        return [{"role": "system", "content": text}] if text else []


def _worded(lesson: Lesson, task: Any) -> str:
    """A trigger is worth its room only where it is not the task itself; often it is another task, of any length."""
    if not lesson.trigger or lesson.trigger == task:
        return lesson.content
    return f"{lesson.content} (Case: {shortened(one_line(lesson.trigger), LONGEST_CASE)})"
