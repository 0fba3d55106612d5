"""One attempt at a task: what the agent gets (`Attempt`), what is recorded of it, and the values they hold.

Also how lessons, which other people and models wrote, are put into a prompt: escaped, on one line, and shortened.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeVar, dataclass_transform

from reflexio.agents.budget import NO_USAGE, Budget, Meter, Usage

Scope = Literal["user", "shared", "agent"]
T = TypeVar("T")

LONGEST_LESSON, LONGEST_CASE = 2_000, 200
FRAME = "<lessons>\nEarlier attempts taught this. Use whatever applies to the task at hand.\n{}\n</lessons>"
_TAG = re.compile(r"<(?=[/!?|a-zA-Z])")


@dataclass_transform(frozen_default=True)
def value(cls: type[T]) -> type[T]:
    """A dataclass that only the type checker keeps from being changed.

    It is for values that each attempt creates by the dozen. Python's own frozen dataclasses call a function for every
    field of every instance, which was a fifth of the cost of an attempt.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The opinion of an evaluator about one output.

    `score` is from 0 to 1. `passed` decides if it is set; otherwise the score is compared with the threshold.
    `feedback` says what is wrong in words that the next attempt can use, `ideal` what would have been right.
    `error` says that the evaluator itself failed: then the score means nothing.
    """

    score: float
    passed: bool | None = None
    feedback: str = ""
    criteria: Mapping[str, float] = field(default_factory=dict)
    ideal: str | None = None
    evaluator: str = ""
    usage: Usage = NO_USAGE
    error: str | None = None

    def __post_init__(self) -> None:
        # Clamping 8 (of 10) or 85 (percent) to 1 would report a success that did not happen. NaN fails here, too.
        if not 0.0 <= self.score <= 1.0:
            raise ValueError(f"A score is a number from 0 to 1, not {self.score!r}.")


@dataclass(frozen=True, slots=True)
class Lesson:
    """Advice for the next attempt at tasks like this one.

    `trigger` says when it applies (by default the task), `rationale` why: the feedback of the evaluator.
    `scope` says who sees it: one user, everybody ("shared"), or everybody as a rule of the agent ("agent").
    The store that keeps the lesson assigns the `id`.
    """

    content: str
    trigger: str = ""
    rationale: str = ""
    id: str = ""
    user_id: str | None = None
    scope: Scope = "user"
    agent_version: str = ""
    run_id: str = ""
    attempt: int = 0
    score: float = 0.0
    created_at: datetime | None = None
    helped: int = 0
    hurt: int = 0
    source: str = "reflexion"


class AttemptFailed(Exception):
    """An agent raises this when it knows that its attempt failed, for instance because a guardrail stopped it.

    The message is the feedback that the next attempt learns from.
    """


@value
class AttemptRecord:
    """The outcome of an attempt. `finished` is False when it ended without an output.

    `lessons` were shown to the attempt, `lesson` was learned from it. `steps` say what the agent did: see `Attempt`.
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
    steps: tuple[str, ...] = ()

    @property
    def score(self) -> float:
        return self.evaluation.score


@dataclass(slots=True, eq=False, repr=False)
class Attempt:
    """What the agent gets in addition to the task. `text()` is ready to be put into a system prompt.

    `meter` adds up what the whole run spends; `spend` adds to it. An agent may append to `steps` what it does, one line
    for each call of a tool: the reflector reads them.
    """

    task: Any
    _: KW_ONLY
    number: int = 1
    max_attempts: int = 1
    lessons: tuple[Lesson, ...] = ()
    previous: tuple[AttemptRecord, ...] = ()
    threshold: float = 0.8
    user_id: str | None = None
    run_id: str = ""
    agent_version: str = ""
    meter: Meter = field(default_factory=Meter)
    steps: list[str] = field(default_factory=list)
    _usage_at_start: Usage = field(init=False)

    def __post_init__(self) -> None:
        self._usage_at_start = self.meter.usage

    @property
    def is_last(self) -> bool:
        return self.number >= self.max_attempts

    @property
    def budget_left(self) -> Budget:
        return self.meter.remaining()

    @property
    def usage(self) -> Usage:
        """What was spent since this attempt started."""
        return self.meter.usage - self._usage_at_start

    @property
    def has_spent(self) -> bool:
        return self.meter.usage is not self._usage_at_start

    def spend(self, usage: Usage) -> None:
        """Reports what a call cost; an agent that reports nothing counts as one call."""
        self.meter.spend(usage)

    def text(self, *, max_chars: int = 4_000) -> str:
        """The lessons for a prompt: escaped, one per line, within `max_chars`. Empty when there are none."""
        bullets = [bullet(escape_tags(_with_case(lesson, self.task))) for lesson in self.lessons]
        bullets = last_fitting(bullets, max_chars - len(FRAME))
        return FRAME.format("\n".join(bullets)) if bullets else ""

    def messages(self) -> list[dict[str, str]]:
        """`text()` as a system message, or no message at all."""
        text = self.text()
        return [{"role": "system", "content": text}] if text else []


def _with_case(lesson: Lesson, task: Any) -> str:
    """The lesson with its trigger, unless that is the task itself. Triggers are often other tasks, of any length."""
    if not lesson.trigger or lesson.trigger == task:
        return lesson.content
    return f"{lesson.content} (Case: {shorten(_on_one_line(lesson.trigger), LONGEST_CASE)})"


def escape_tags(text: str) -> str:
    """The text without anything that opens or closes a tag; comparisons like `a < b` stay as they are.

    >>> escape_tags("if a < b: </lessons>")
    'if a < b: &lt;/lessons>'
    """
    return _TAG.sub("&lt;", text) if "<" in text else text


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def bullet(text: str) -> str:
    return f"- {_on_one_line(text)}"


def shorten(text: str, longest: int = LONGEST_LESSON) -> str:
    """
    >>> shorten("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= longest else text[: longest - 1] + "…"


def last_fitting(texts: Sequence[str], max_chars: int) -> list[str]:
    """As many of the last texts as fit into `max_chars`, in their order; if not even one fits, it is cut.

    The most important lesson is the last one in the list, so the first ones are left out.
    """
    kept: list[str] = []
    room = max_chars
    for text in reversed(texts):
        if len(text) > room:
            return kept[::-1] if kept else [shorten(text, room)] if room > 1 else []
        kept.append(text)
        room -= len(text) + 1
    return kept[::-1]
