"""The functions that run the loop for any callable: `reflexion`, its stream, its synchronous twin, and a decorator."""

import asyncio
import functools
import secrets
import warnings
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import Any, Literal, TypeAlias, TypedDict, Unpack, get_args

from reflexio.agents.attempt import Attempt, AttemptRecord
from reflexio.agents.budget import UNLIMITED, Budget, Meter
from reflexio.agents.calls import AsyncCall, as_async_call, check_function, is_async, is_generator, with_attempt
from reflexio.agents.evaluators.evaluation import Evaluators, as_evaluate
from reflexio.agents.events import ReflexionEvent, ReflexionResult, Stopped
from reflexio.agents.lessons.store import LessonStore, as_lesson_store
from reflexio.agents.loop import Keep, LearnFrom, ReflexionLoop, RunPlan
from reflexio.agents.vectors.store import VectorStore

AgentFunction: TypeAlias = Callable[..., Any]
Reflect: TypeAlias = Callable[..., Any] | Literal["feedback"] | None
"""`reflect(record)` or `reflect(record, attempt)`, plain or async; it answers with a sentence, a `Lesson` or None.

"feedback" takes the evaluator's feedback as the lesson, None learns nothing.
"""
# All other options are fields of the RunPlan.
PARTS = ("reflect", "lessons", "budget", "run_id")


class Options(TypedDict, total=False):
    """The options of a run; see `reflexion`."""

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
    agent: AgentFunction, task: Any, *, evaluate: Evaluators, **options: Unpack[Options]
) -> ReflexionResult:
    """Runs `agent` on `task` until `evaluate` passes its output, and learns a lesson from each failure.

    `agent` is called with the task, and with the `Attempt` if it has a second parameter: `attempt.text()` are the
    lessons. `evaluate` is called with the output (and the attempt) and answers with a score from 0 to 1, a bool,
    `(score, feedback)`, an `Evaluation`, or None for a pass. Plain functions run in threads.

    - `reflect`: "feedback" (the evaluator's feedback is the lesson), a function of the failed attempt, or None.
    - `lessons`: a lesson store, or a vector store, that outlives the run; without one, lessons last as long as the run.
    - `max_attempts` 3, `threshold` 0.8, `top_k` 5 lessons for each attempt, none below `min_similarity`.
    - `keep`: the "best" output or the "last". `patience`: stop after so many attempts without a better score.
    - `budget`: checked before each call; work that still runs when its seconds are over is abandoned.
    - `learn_from`: "failures" that another attempt follows, "failures+final", or "all".
    - `user_id`, `agent_version`, `run_id`: to whom the lessons belong; a store keeps users apart.

    An error that the agent raises is raised, unless an earlier attempt has finished: then that one is kept. To fail an
    attempt on purpose, raise `AttemptFailed`. No other failure costs a finished answer; see `result.problems`.
    """
    loop = ReflexionLoop(build_plan(agent, task, evaluate, options), Meter(options.get("budget") or UNLIMITED))
    async with aclosing(loop.events()) as events:
        async for event in events:
            if isinstance(event, Stopped):
                return event.result
    raise AssertionError("A run ends with its last event.")


async def reflexion_stream(
    agent: AgentFunction, task: Any, *, evaluate: Evaluators, **options: Unpack[Options]
) -> AsyncGenerator[ReflexionEvent, None]:
    """The events of `reflexion`, as they happen. The last event is `Stopped`; closing the stream earlier ends the run.

    An agent that is an async generator is followed step by step: it yields `Progress` values, and its answer as an
    `Output`.
    """
    loop = ReflexionLoop(build_plan(agent, task, evaluate, options), Meter(options.get("budget") or UNLIMITED))
    async with aclosing(loop.events()) as events:
        async for event in events:
            yield event


def reflexion_sync(
    agent: AgentFunction, task: Any, *, evaluate: Evaluators, **options: Unpack[Options]
) -> ReflexionResult:
    """`reflexion` for programs without an event loop."""
    result = run_in_new_loop(reflexion(agent, task, evaluate=evaluate, **options), "reflexion")
    assert isinstance(result, ReflexionResult)
    return result


def reflexive(*, evaluate: Evaluators, **options: Unpack[Options]) -> Callable[..., Any]:
    """A decorator: calling the function with a task runs `reflexion` on it and returns the result.

    It is for functions; for a method, call `reflexion(self.method, …)` instead.

    >>> @reflexive(evaluate=lambda output: output.endswith("!"), reflect=lambda record: "Shout.")
    ... def greet(task, attempt):
    ...     return task + "!" * len(attempt.lessons)
    >>> greet("Hello").output
    'Hello!'
    """
    check_options(options)

    def decorate(agent: AgentFunction) -> Callable[..., Any]:
        if is_async(agent) or is_generator(agent):

            @functools.wraps(agent)
            async def learn(task: Any) -> ReflexionResult:
                return await reflexion(agent, task, evaluate=evaluate, **options)

            return learn

        @functools.wraps(agent)
        def learn_sync(task: Any) -> ReflexionResult:
            return reflexion_sync(agent, task, evaluate=evaluate, **options)

        return learn_sync

    return decorate


def build_plan(agent: AgentFunction, task: Any, evaluate: Evaluators, options: Options) -> RunPlan:
    """The plan of a run, or a ValueError or TypeError that says what is wrong with it."""
    check_options(options)
    if not callable(agent):
        raise TypeError(f"The agent {agent!r} cannot be called; give a function of the task.")
    warn_of_self_judgement(str(getattr(agent, "model_name", "")), evaluate)
    reflect = options.get("reflect", "feedback")
    store, streams = options.get("lessons"), is_generator(agent)
    rules: Any = {name: option for name, option in options.items() if name not in PARTS}
    return RunPlan(
        act=with_attempt(agent) if streams else as_async_call(agent),
        streams=streams,
        evaluate=as_evaluate(evaluate),
        evaluating_spends=spends(evaluate),
        reflect=as_reflect(reflect),
        reflecting_spends=spends(reflect),
        task=task,
        run_id=options.get("run_id") or new_run_id(),
        store=None if store is None else as_lesson_store(store),
        **rules,
    )


def check_options(options: Options, *, top_k: str = "top_k") -> None:
    """Raises ValueErrors in a fixed order; `top_k` is the caller's name of that option."""
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
    for name, choices in (("keep", get_args(Keep)), ("learn_from", get_args(LearnFrom))):
        if options.get(name, choices[0]) not in choices:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}")


def as_reflect(reflect: Reflect, name: str = "reflect") -> AsyncCall | None:
    match reflect:
        case None:
            return None
        case "feedback":
            return _feedback
        case _:
            check_function(name, reflect, 'a function of the failed attempt, a Reflector(…), "feedback" or None')
            return as_async_call(reflect)


async def _feedback(record: AttemptRecord, attempt: Attempt | None) -> str:
    return record.evaluation.feedback


def spends(part: Any) -> bool:
    """Whether calling this evaluator or reflector is known to cost something."""
    if isinstance(part, list | tuple):
        return any(map(spends, part))
    return bool(getattr(part, "spends", False))


def new_run_id() -> str:
    return f"run_{secrets.token_hex(8)}"


def warn_of_self_judgement(actor: str, evaluate: Any) -> None:
    if actor and actor in _judge_models(evaluate):
        warnings.warn(f"{actor} judges its own work and is likely to be lenient; use another model.", stacklevel=4)


def _judge_models(part: Any) -> list[str]:
    """The models of a judge, and of all judges in a list or a combination."""
    parts = part if isinstance(part, list | tuple) else getattr(part, "evaluators", ())
    return [str(getattr(part, "model_name", "")), *(name for inner in parts for name in _judge_models(inner))]


def run_in_new_loop(work: Coroutine[Any, Any, Any], name: str) -> Any:
    """Runs the coroutine in a new event loop, and closes the models that were opened in it."""

    async def run_and_close() -> Any:
        from reflexio.agents.model import close_models

        try:
            return await work
        finally:
            await close_models()

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(run_and_close())
    work.close()
    raise RuntimeError(f"An event loop is running already: await {name}(…) instead of {name}_sync(…).")
