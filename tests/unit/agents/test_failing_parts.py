"""A part that fails or hangs never costs a finished answer; what a run may cost is kept; cancelling cancels."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from reflexio.agents import (
    All,
    Attempt,
    AttemptRecord,
    Budget,
    Evaluation,
    Lesson,
    Output,
    ReflexionResult,
    Usage,
    reflexion,
    reflexion_stream,
)
from reflexio.agents.api import build_plan
from reflexio.agents.budget import Meter
from reflexio.agents.evaluators.evaluation import as_evaluate
from reflexio.agents.events import Stopped
from reflexio.agents.loop import ReflexionLoop, RunPlan
from tests.unit.agents.notes import Broken, Notes, answering, itself

T = TypeVar("T")


def raising(error: BaseException) -> Callable[..., Any]:
    async def part(*_: Any) -> Any:
        raise error

    return part


async def waits_in_vain(*_: Any, **__: Any) -> Any:
    """A part that waits for a task of its own, which somebody has cancelled."""
    other = asyncio.ensure_future(asyncio.Event().wait())
    other.cancel()
    await other


# Evaluators


@pytest.mark.parametrize("error", [KeyError("score"), SystemExit(3), TimeoutError()])
async def test_an_evaluator_that_raises_is_reported_and_the_answer_kept(error: BaseException) -> None:
    async def evaluate(output: Any) -> float:
        raise error

    result = await reflexion(answering("a", "b"), "task", evaluate=evaluate, max_attempts=2)
    assert (result.output, result.passed, result.stop_reason) == ("b", False, "evaluator_error")
    assert type(error).__name__ in str(result.attempts[0].evaluation.error)
    assert result.lessons == ()
    assert len(result.problems) == 2


async def test_an_answer_that_was_scored_goes_before_one_that_was_not() -> None:
    def evaluate(output: float) -> float:
        if output > 0.5:
            raise KeyError(output)
        return output

    result = await reflexion(answering(0.1, 0.9), "task", evaluate=evaluate, max_attempts=2)
    assert (result.output, result.stop_reason) == (0.1, "max_attempts")


async def test_an_assertion_is_a_verdict_and_its_words_are_the_lesson() -> None:
    def evaluate(output: int) -> None:
        assert output == 2, "It should be two."

    result = await reflexion(answering(1, 2), "task", evaluate=evaluate)
    assert result.passed
    assert result.problems == ()
    assert result.lessons[0].content.startswith("It should be two.")


@pytest.mark.parametrize("outcome", ["good", [0.5], (0.5,), (None, "?"), (Evaluation(1.0), "?"), 8, float("nan")])
async def test_an_answer_that_is_no_verdict_is_an_error_and_not_a_zero(outcome: Any) -> None:
    result = await reflexion(answering(1), "task", evaluate=lambda output: outcome, max_attempts=1)
    assert result.attempts[0].evaluation.error is not None
    assert not result.passed


async def test_a_passed_evaluation_with_an_error_has_not_passed() -> None:
    result = await reflexion(
        answering(1), "task", evaluate=lambda output: Evaluation(1.0, True, error="half"), max_attempts=1
    )
    assert not result.passed


# Reflectors and stores


@pytest.mark.parametrize("place", ["evaluate", "reflect", "recall", "save", "outcome"])
async def test_a_part_whose_own_work_was_cancelled_costs_no_answer(place: str) -> None:
    notes = Notes(Lesson("Known.", id="note-1"))
    parts: dict[str, Any] = {"evaluate": itself, "reflect": "feedback", "lessons": notes}
    if place in parts:
        parts[place] = waits_in_vain
    else:
        setattr(notes, place, waits_in_vain)
    result = await reflexion(answering(0.3, 0.4), "task", max_attempts=2, **parts)
    assert result.output == 0.4
    assert "CancelledError" in result.problems[0]


async def test_an_agent_whose_own_work_was_cancelled_leaves_the_answer_it_gave() -> None:
    async def agent(task: str, attempt: Attempt) -> float:
        return 0.5 if attempt.number == 1 else await waits_in_vain()

    result = await reflexion(agent, "task", evaluate=itself)
    assert (result.output, result.stop_reason) == (0.5, "agent_error")


async def test_a_reflector_that_ends_the_program_costs_only_its_lesson() -> None:
    result = await reflexion(answering(0.5, 1.0), "task", evaluate=itself, reflect=raising(SystemExit(3)))
    assert (result.passed, result.lessons) == (True, ())


async def test_a_reflector_that_raises_costs_only_its_lesson() -> None:
    result = await reflexion(answering(0.1, 0.9), "task", evaluate=itself, reflect=raising(ValueError("no idea")))
    assert (result.output, result.lessons) == (0.9, ())
    assert result.problems == ("attempt 1, reflector: ValueError: no idea",)


async def test_a_reflector_that_answers_nonsense_is_reported() -> None:
    result = await reflexion(answering(0.1, 0.9), "task", evaluate=itself, reflect=lambda _: 5)
    assert "a Lesson or None, not 5" in result.problems[0]


async def test_a_store_that_fails_costs_neither_the_answer_nor_the_lesson_of_this_run() -> None:
    result = await reflexion(answering(0.1, 0.9), "task", evaluate=itself, lessons=Broken())
    assert result.passed
    assert [each.content for each in result.lessons] == ["only 0.1"]
    assert [each.partition(": ")[0] for each in result.problems] == [
        "attempt 1, store",
        "attempt 1, store",
        "attempt 2, store",
    ]


# Agents


async def test_an_agent_that_raises_at_first_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        await reflexion(raising(ZeroDivisionError()), "task", evaluate=itself)


async def test_an_agent_that_raises_later_leaves_the_answer_it_gave() -> None:
    async def agent(task: str, attempt: Attempt) -> float:
        return 0.5 / (2 - attempt.number)

    result = await reflexion(agent, "task", evaluate=itself)
    assert (result.output, result.stop_reason) == (0.5, "agent_error")
    assert "ZeroDivisionError" in result.problems[0]


# Budgets


async def test_calls_are_counted_before_each_call() -> None:
    made: list[str] = []

    async def agent(task: str, attempt: Attempt) -> float:
        made.append("act")
        attempt.spend(Usage(calls=1, input_tokens=10))
        return 0.1

    class Judge:
        spends = True

        async def __call__(self, output: float) -> Evaluation:
            made.append("judge")
            return Evaluation(output, feedback="bad", usage=Usage(calls=1, input_tokens=10))

    class Reflector:
        spends = True

        async def __call__(self, record: AttemptRecord, attempt: Attempt) -> str:
            made.append("reflect")
            attempt.spend(Usage(calls=1, input_tokens=10))
            return "Better."

    async def run(**limits: Any) -> str:
        made.clear()
        result = await reflexion(agent, "task", evaluate=Judge(), reflect=Reflector(), budget=Budget(**limits))
        assert result.stop_reason == "budget"
        return " ".join(made)

    assert await run(calls=0) == ""
    assert await run(calls=1) == "act"
    assert await run(calls=2) == "act judge"
    assert await run(calls=3) == "act judge reflect"
    assert await run(calls=4) == "act judge reflect act"
    assert await run(tokens=20) == "act judge"
    assert await run(tokens=21) == "act judge reflect"


async def test_money_is_a_limit() -> None:
    async def agent(task: str, attempt: Attempt) -> float:
        attempt.spend(Usage(1, 10, 10, cost_usd=0.4))
        return 0.1

    result = await reflexion(agent, "task", evaluate=itself, max_attempts=9, budget=Budget(usd=1.0))
    assert len(result.attempts) == 3
    assert result.usage.cost_usd == pytest.approx(1.2)


async def test_an_evaluator_that_costs_nothing_may_still_prove_a_success() -> None:
    result = await reflexion(answering(1.0), "task", evaluate=itself, budget=Budget(calls=1))
    assert (result.passed, result.stop_reason) == (True, "passed")


async def test_an_unscored_answer_is_kept_when_the_budget_is_spent() -> None:
    class Dear:
        spends = True

        async def __call__(self, output: str) -> float:
            raise AssertionError("nobody may pay for this")

    result = await reflexion(answering("a"), "task", evaluate=Dear(), budget=Budget(calls=1))
    assert (result.output, result.passed, result.stop_reason) == ("a", False, "budget")
    assert "budget" in str(result.attempts[0].evaluation.error)


async def test_a_list_with_a_spending_evaluator_spends() -> None:
    class Dear:
        spends = True

        async def __call__(self, output: str) -> float:
            return 1.0

    assert All(itself, Dear()).spends
    result = await reflexion(answering("a"), "task", evaluate=[itself, Dear()], budget=Budget(calls=1))
    assert result.stop_reason == "budget"


async def test_an_attempt_sees_what_is_left() -> None:
    left: list[Budget] = []

    async def agent(task: str, attempt: Attempt) -> float:
        left.append(attempt.budget_left)
        attempt.spend(Usage(1, 30, 10, 0.1))
        return 0.1

    await reflexion(agent, "t", evaluate=itself, max_attempts=2, budget=Budget(usd=1, tokens=100, calls=5))
    assert left == [Budget(usd=1, tokens=100, calls=5), Budget(usd=0.9, tokens=60, calls=4)]


def test_a_clock_decides_about_seconds() -> None:
    now = [0.0]
    meter = Meter(Budget(seconds=5), clock=lambda: now[0])
    assert meter.reached_limit() == ""
    now[0] = 5.0
    assert (meter.reached_limit(), meter.remaining().seconds) == ("seconds", 0.0)


# Parts that hang


async def forever(*_: Any, **__: Any) -> Any:
    await asyncio.Event().wait()


class Clock:
    """Ten seconds that pass when a part says so; then a hundredth is left."""

    def __init__(self) -> None:
        self.now = 0.0

    def nearly_over(self, value: T) -> T:
        self.now = 9.99
        return value

    async def run(self, agent: Any, **parts: Any) -> ReflexionResult:
        options: Any = parts
        plan = build_plan(agent, "task", options.pop("evaluate", itself), options)
        meter = Meter(Budget(seconds=10), clock=lambda: self.now)
        *_, last = [event async for event in ReflexionLoop(plan, meter).events()]
        assert isinstance(last, Stopped)
        return last.result


async def test_an_evaluator_that_hangs_is_given_up_and_the_answer_kept() -> None:
    clock = Clock()
    result = await clock.run(lambda task: clock.nearly_over("a"), evaluate=forever)
    assert (result.output, result.stop_reason) == ("a", "budget")
    assert "time was over" in str(result.attempts[0].evaluation.error)


async def test_a_reflector_that_hangs_is_given_up_and_the_answer_kept() -> None:
    clock = Clock()
    result = await clock.run(answering(0.1), evaluate=clock.nearly_over, reflect=forever)
    assert (result.output, result.stop_reason) == (0.1, "budget")


@pytest.mark.parametrize("call", ["save", "outcome"])
async def test_a_store_that_hangs_is_given_up_and_the_answer_kept(call: str) -> None:
    clock, notes = Clock(), Notes(Lesson("What is bad?", id="old", scope="shared"))
    setattr(notes, call, forever)

    def evaluate(score: float) -> tuple[float, str]:
        return clock.nearly_over((score, "bad"))

    result = await clock.run(answering(0.1, 0.1), evaluate=evaluate, lessons=notes, max_attempts=2)
    assert result.output == 0.1
    assert result.problems[0] == "attempt 1, store: OutOfTime"


async def test_an_agent_that_hangs_is_given_up_and_an_earlier_answer_kept() -> None:
    clock = Clock()

    async def agent(task: str, attempt: Attempt) -> float:
        return 0.5 if attempt.number == 1 else await forever()

    result = await clock.run(agent, reflect=lambda _: clock.nearly_over("Hurry."))
    assert (result.output, result.stop_reason) == (0.5, "budget")


async def test_an_agent_that_hangs_at_once_leaves_nothing() -> None:
    result = await reflexion(forever, "task", evaluate=itself, budget=Budget(seconds=0.01))
    assert (result.output, result.stop_reason, len(result.attempts)) == (None, "budget", 1)


async def test_an_agent_that_yields_and_hangs_is_given_up_and_closed() -> None:
    clock, closed = Clock(), []

    async def agent(task: str) -> Any:
        try:
            yield clock.nearly_over("thinking")
            await forever()
            yield Output(1)
        finally:
            closed.append(True)

    result = await clock.run(agent)
    assert (result.stop_reason, closed) == ("budget", [True])


def test_a_plain_function_that_hangs_does_not_keep_the_program() -> None:
    clock, release = Clock(), threading.Event()
    try:
        result = asyncio.run(clock.run(lambda task: clock.nearly_over("a"), evaluate=lambda output: release.wait()))
        assert (result.output, result.stop_reason) == ("a", "budget")
    finally:
        release.set()


async def test_a_timeout_of_the_agents_own_is_the_agents() -> None:
    with pytest.raises(TimeoutError):
        await reflexion(raising(TimeoutError()), "task", evaluate=itself, budget=Budget(seconds=60))


# Cancelling


def _hanging_at(place: str, reached: asyncio.Event) -> dict[str, Any]:
    async def hang(*_: Any, **__: Any) -> Any:
        reached.set()
        await forever()

    notes = Notes()
    if place in ("recall", "save", "outcome"):
        setattr(notes, place, hang)
    agent = hang if place == "act" else answering(0.1, 0.2, 0.3)
    return {
        "agent": agent,
        "evaluate": hang if place == "evaluate" else itself,
        "reflect": hang if place == "reflect" else "feedback",
        "lessons": notes,
    }


@pytest.mark.parametrize("place", ["recall", "act", "evaluate", "reflect", "save", "outcome"])
async def test_a_run_can_be_cancelled_wherever_it_is(place: str) -> None:
    reached = asyncio.Event()
    parts = _hanging_at(place, reached)
    running = asyncio.create_task(reflexion(parts.pop("agent"), "task", **parts))
    await reached.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_what_was_saved_before_a_cancellation_stays_saved() -> None:
    notes, reached = Notes(), asyncio.Event()

    async def agent(task: str, attempt: Attempt) -> float:
        if attempt.number == 2:
            reached.set()
            await forever()
        return 0.1

    running = asyncio.create_task(reflexion(agent, "task", evaluate=itself, lessons=notes))
    await reached.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [each.content for each in notes.saved] == ["only 0.1"]


async def test_a_stream_can_be_left_after_every_event() -> None:
    total = len([event async for event in reflexion_stream(answering(0.1, 0.9), "task", evaluate=itself)])
    for leave_after in range(1, total):
        calls = 0

        async def agent(task: str, attempt: Attempt) -> float:
            nonlocal calls
            calls += 1
            return (0.1, 0.9)[attempt.number - 1]

        stream = reflexion_stream(agent, "task", evaluate=itself)
        for _ in range(leave_after):
            await anext(stream)
        await stream.aclose()
        made = calls
        await asyncio.sleep(0)
        assert calls == made


async def test_leaving_a_stream_closes_an_agent_that_yields() -> None:
    closed = []

    async def agent(task: str) -> Any:
        try:
            yield "thinking"
            yield Output(1)
        finally:
            closed.append(True)

    stream = reflexion_stream(agent, "task", evaluate=itself)
    async for event in stream:
        if event.name == "reflexion.progress":
            break
    await stream.aclose()
    assert closed == [True]


async def test_a_meter_may_be_shared_by_runs() -> None:
    meter = Meter(Budget(calls=3))
    plan = RunPlan(answering(0.1, 0.1, 0.1), as_evaluate(itself), None, "task", "run", max_attempts=2)
    for _ in range(2):
        events = [event async for event in ReflexionLoop(plan, meter).events()]
    assert (meter.usage.calls, events[-1].to_dict()["reason"]) == (3, "budget")
