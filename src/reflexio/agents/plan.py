"""How a run goes about it: the parts that act, evaluate and reflect, and the rules by which it goes on and stops."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from reflexio.agents.attempt import Attempt
from reflexio.agents.calling import Called
from reflexio.agents.evaluators.outcome import Evaluate
from reflexio.agents.stores import LessonStore
from reflexio.agents.values import value

Keep = Literal["best", "last"]
LearnFrom = Literal["failures", "failures+final", "all"]


@value
class Output:
    """What an agent that is an async generator yields as its answer; all else it yields is progress."""

    value: Any


def no_answer() -> NoReturn:
    raise TypeError("The agent is an async generator and ended without yielding an Output.")


@dataclass(frozen=True, slots=True)
class Plan:
    """Made once; a run never changes it.

    `streams` says that `act` is an async generator; one that yields no `Output` is asked for its `answer` in the end.

    What `spends` nothing is called as long as there is time, even when all else of the budget is used up.
    """

    act: Callable[[Any, Attempt], Any]
    evaluate: Evaluate
    reflect: Called | None
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
