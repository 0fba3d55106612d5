"""What passes between an agent, its evaluator and its lessons: values of the standard library, nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeVar, dataclass_transform

Scope = Literal["user", "shared", "agent"]
T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def value(made: type[T]) -> type[T]:
    """A dataclass that is not to be changed: the type checker sees to that, and it alone.

    For what an attempt makes by the dozen and no two runs share. Python's own freezing calls a function for every
    field of every instance, which was a fifth of what an attempt costs.
    """
    return dataclass(slots=True, unsafe_hash=True)(made)


@dataclass(frozen=True, slots=True)
class Usage:
    """What model calls cost."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cost_usd + other.cost_usd,
        )

    def __sub__(self, other: "Usage") -> "Usage":
        return Usage(
            self.calls - other.calls,
            self.input_tokens - other.input_tokens,
            self.output_tokens - other.output_tokens,
            self.cost_usd - other.cost_usd,
        )


NO_USAGE = Usage()


@dataclass(frozen=True, slots=True)
class Budget:
    """What a run may cost at most; None is no limit. Checked before each call: the last one may overshoot.

    `seconds` alone is also kept during a call: what is under way when they are over is given up.
    """

    usd: float | None = None
    tokens: int | None = None
    seconds: float | None = None
    calls: int | None = None

    def __post_init__(self) -> None:
        for name in ("usd", "tokens", "seconds", "calls"):
            limit = getattr(self, name)
            if limit is not None and not limit >= 0:
                raise ValueError(f"Budget({name}={limit!r}): a limit is 0 or more, or None for none.")


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What an evaluator thinks of one output.

    `score` runs from 0 to 1. `passed` decides when it is given; else the score is held against the threshold.
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
        # 8 of 10 or 85 % clamped to 1 would be a success that nobody has seen. NaN fails this, too.
        if not 0.0 <= self.score <= 1.0:
            raise ValueError(f"A score runs from 0 to 1, not {self.score!r}.")


@dataclass(frozen=True, slots=True)
class Lesson:
    """Advice for the next attempt at tasks like this one.

    `trigger` says when it applies (the task, unless somebody knows better), `rationale` why: the evaluator's words.
    `scope` is whose it is: the user's, everybody's ("shared"), or a rule that the agent has for everybody ("agent").
    `id` is given by the store that keeps it.
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
