"""The doors of the engine for any callable: `reflexion`, its stream, its plain twin, and a decorator."""

import asyncio
import functools
import secrets
import warnings
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import aclosing
from typing import Any, TypedDict, Unpack, get_args

from reflexio.agents.calling import is_async, is_generator, prepared, with_attempt
from reflexio.agents.evaluators.outcome import Evaluator, evaluating
from reflexio.agents.events import ReflexionEvent, ReflexionResult, Stopped
from reflexio.agents.loop import Run
from reflexio.agents.meter import UNLIMITED, Meter
from reflexio.agents.plan import Keep, LearnFrom, Plan
from reflexio.agents.reflecting import Reflect, reflecting
from reflexio.agents.stores import LessonStore, VectorStore, lesson_store
from reflexio.agents.values import Budget

RULES = (
    "max_attempts",
    "threshold",
    "top_k",
    "min_similarity",
    "keep",
    "patience",
    "learn_from",
    "user_id",
    "agent_version",
)


class Options(TypedDict, total=False):
    """How a run goes about it; see `reflexion`."""

    reflect: Reflect
    lessons: LessonStore | VectorStore | None
    max_attempts: int
    threshold: float
    top_k: int
    min_similarity: float | None
    keep: Keep
    patience: int | None
    budget: Budget | None
    learn_from: LearnFrom
    user_id: str | None
    agent_version: str
    run_id: str


async def reflexion(
    agent: Callable[..., Any],
    task: Any,
    *,
    evaluate: Evaluator | Sequence[Evaluator],
    **options: Unpack[Options],
) -> ReflexionResult:
    """Lets `agent` try `task` until `evaluate` is content, and learn a lesson from each failure.

    `agent` is called with the task, and with the `Attempt` if it has a second parameter: `attempt.text()` are the
    lessons. `evaluate` is called with the output (and the attempt) and answers with a score from 0 to 1, a bool,
    `(score, feedback)`, an `Evaluation`, or None for a pass. Plain functions run in threads.

    - `reflect`: "feedback" (the evaluator's words are the lesson), a function of the failed attempt, or None.
    - `lessons`: a lesson store, or a vector store, that outlives the run; without one, lessons live as long as the run.
    - `max_attempts` 3, `threshold` 0.8, `top_k` 5 lessons an attempt, none below `min_similarity`.
    - `keep`: the "best" output or the "last". `patience`: give up after so many attempts without a better score.
    - `budget`: checked before each call; what is under way when its seconds are over is given up.
    - `learn_from`: "failures" that another attempt follows, "failures+final", or "all".
    - `user_id`, `agent_version`, `run_id`: whose lessons these are; a store keeps users apart.

    An agent that raises is raised, unless an earlier attempt has finished: then that one is kept. To fail an attempt
    on purpose, raise `AttemptFailed`. Nothing else that fails costs a finished answer; see `result.problems`.
    """
    run = Run(planned(agent, task, evaluate, options), Meter(options.get("budget") or UNLIMITED))
    async with aclosing(run.events()) as events:
        async for event in events:
            if isinstance(event, Stopped):
                return event.result
    raise AssertionError("A run ends with its last event.")


async def reflexion_stream(
    agent: Callable[..., Any],
    task: Any,
    *,
    evaluate: Evaluator | Sequence[Evaluator],
    **options: Unpack[Options],
) -> AsyncGenerator[ReflexionEvent, None]:
    """`reflexion`, told while it happens. The last event is `Stopped`; leaving earlier ends the run.

    An agent that is an async generator is followed step by step: what it yields comes as `Progress`, its answer as
    an `Output`.
    """
    run = Run(planned(agent, task, evaluate, options), Meter(options.get("budget") or UNLIMITED))
    async with aclosing(run.events()) as events:
        async for event in events:
            yield event


def reflexion_sync(
    agent: Callable[..., Any],
    task: Any,
    *,
    evaluate: Evaluator | Sequence[Evaluator],
    **options: Unpack[Options],
) -> ReflexionResult:
    """`reflexion` for programs without an event loop."""
    result = run_alone(reflexion(agent, task, evaluate=evaluate, **options), "reflexion")
    assert isinstance(result, ReflexionResult)
    return result


def reflexive(*, evaluate: Evaluator | Sequence[Evaluator], **options: Unpack[Options]) -> Callable[..., Any]:
    """A decorator: calling the function with a task then runs `reflexion` on it, and answers with the result.

    It is for functions; a method is given to `reflexion(self.method, …)` instead.

    >>> @reflexive(evaluate=lambda said: said.endswith("!"), reflect=lambda failed: "Shout.")
    ... def greet(task, attempt):
    ...     return task + "!" * len(attempt.lessons)
    >>> greet("Hello").output
    'Hello!'
    """

    check(options)

    def decorate(agent: Callable[..., Any]) -> Callable[..., Any]:
        if is_async(agent) or is_generator(agent):

            @functools.wraps(agent)
            async def learn(task: Any) -> ReflexionResult:
                return await reflexion(agent, task, evaluate=evaluate, **options)

            return learn

        @functools.wraps(agent)
        def learn_alone(task: Any) -> ReflexionResult:
            return reflexion_sync(agent, task, evaluate=evaluate, **options)

        return learn_alone

    return decorate


def planned(agent: Callable[..., Any], task: Any, evaluate: Evaluator | Sequence[Evaluator], options: Options) -> Plan:
    """The plan of a run, or a ValueError or TypeError that says what is wrong with it."""
    check(options)
    if not callable(agent):
        raise TypeError(f"The agent {agent!r} cannot be called; give a function of the task.")
    warn_of_self_judgement(str(getattr(agent, "model_name", "")), evaluate)
    reflect = options.get("reflect", "feedback")
    store, streams = options.get("lessons"), is_generator(agent)
    rules: Any = {name: value for name, value in options.items() if name in RULES}
    return Plan(
        act=with_attempt(agent) if streams else prepared(agent),
        streams=streams,
        evaluate=evaluating(evaluate),
        evaluating_spends=spends(evaluate),
        reflect=reflecting(reflect),
        reflecting_spends=spends(reflect),
        task=task,
        run_id=options.get("run_id") or new_run_id(),
        store=None if store is None else lesson_store(store),
        **rules,
    )


def run_alone(work: Coroutine[Any, Any, Any], name: str) -> Any:
    """Runs in an event loop of its own, and lets go of the models that were opened in it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_closing(work))
    work.close()
    raise RuntimeError(f"An event loop is running already: await {name}(…) instead of {name}_sync(…).")


async def _closing(work: Coroutine[Any, Any, Any]) -> Any:
    from reflexio.agents.opened import close_models

    try:
        return await work
    finally:
        await close_models()


def spends(part: Any) -> bool:
    """Whether calling it is known to cost something."""
    if isinstance(part, list | tuple):
        return any(map(spends, part))
    return bool(getattr(part, "spends", False))


def new_run_id() -> str:
    return f"run_{secrets.token_hex(8)}"


def check(options: Options, *, top_k: str = "top_k") -> None:
    """ValueErrors in a fixed order; `top_k` may have another name for the caller."""
    for name in options:
        if name not in Options.__annotations__:
            raise TypeError(f"There is no option {name!r}; there are: {', '.join(Options.__annotations__)}.")
    if options.get("max_attempts", 1) < 1:
        raise ValueError("max_attempts must be >= 1")
    if not 0.0 <= options.get("threshold", 0.8) <= 1.0:
        raise ValueError("threshold must be in [0.0, 1.0]")
    if options.get("top_k", 1) < 1:
        raise ValueError(f"{top_k} must be >= 1")
    patience = options.get("patience")
    if patience is not None and patience < 1:
        raise ValueError("patience must be >= 1")
    for name, known in (("keep", get_args(Keep)), ("learn_from", get_args(LearnFrom))):
        if options.get(name, known[0]) not in known:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}")


def warn_of_self_judgement(actor: str, evaluate: Any) -> None:
    if actor and actor in _model_names(evaluate):
        warnings.warn(f"{actor} judges its own work, and is likely to be kind; let another model judge.", stacklevel=4)


def _model_names(part: Any) -> list[str]:
    """Of an agent or a judge, and of all judges in a list or a combination."""
    parts = part if isinstance(part, list | tuple) else getattr(part, "evaluators", ())
    return [str(getattr(part, "model_name", "")), *(name for each in parts for name in _model_names(each))]
