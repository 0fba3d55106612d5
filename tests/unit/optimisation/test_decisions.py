"""The pure decisions of optimisation: windows, cost, verdicts, adoption; and the thread that GEPA runs in."""

import asyncio
import threading
from typing import Any

import pytest

from reflexio.models.config import PlaybookOptimizerConfig
from reflexio.models.interaction import Interaction
from reflexio.models.optimisation import ChatMessage, Comparison, Judgement, Rollout, Scenario, Trial
from reflexio.optimisation.adopt import decide
from reflexio.optimisation.gepa import SearchStopped, WorkflowCaller, minibatch_size, most_trials, run_in_thread
from reflexio.optimisation.judge import aborted, combine_verdicts
from reflexio.optimisation.replay_windows import ReplayWindow, build_scenario, explain_shortage, split
from reflexio.optimisation.trial import gather_all

CONFIG = PlaybookOptimizerConfig()


def source(number: int) -> ReplayWindow:
    return ReplayWindow(number, "ann", (number,), (number,))


def sources(count: int) -> tuple[ReplayWindow, ...]:
    return tuple(source(number) for number in range(1, count + 1))


def turn(number: int, role: str, content: str, **more: Any) -> Interaction:
    known = {"interaction_id": number, "user_id": "ann", "request_id": "r", "created_at": 1}
    return Interaction.model_validate({**known, "role": role, "content": content, **more})


# Windows


@pytest.mark.parametrize(
    ("count", "most", "train", "held_out"),
    [
        (1, 2, [1], [1]),
        (2, 2, [2], [1]),
        (3, 2, [3], [1, 2]),
        (6, 2, [3, 4, 5, 6], [1, 2]),
        (6, 4, [5, 6], [1, 2, 3, 4]),
    ],
)
def test_the_first_windows_are_held_out_and_one_at_least_is_left_to_search_with(
    count: int, most: int, train: list[int], held_out: list[int]
) -> None:
    windows = split(sources(count), PlaybookOptimizerConfig(max_validation_windows=most))
    assert [window.user_playbook_id for window in windows.train] == train
    assert [window.user_playbook_id for window in windows.validation] == held_out


@pytest.mark.parametrize(
    ("count", "least", "enough"),
    [(0, 1, False), (1, 1, True), (1, 2, False), (2, 2, False), (3, 2, True), (9, 3, False)],
)
def test_too_few_windows_are_reported(count: int, least: int, enough: bool) -> None:
    config = PlaybookOptimizerConfig(min_commit_windows=least)
    assert (explain_shortage(split(sources(count), config), config) == "") is enough


def window(*said: str, cited: int) -> Scenario | None:
    turns = {
        number: turn(number, "Agent" if number % 2 == 0 else "User", words)
        for number, words in enumerate(said, start=1)
    }
    return build_scenario(ReplayWindow(7, "ann", (cited,), tuple(turns)), turns, "a lesson", 2)


def test_the_replay_starts_one_turn_before_the_lesson_and_earlier_turns_are_history() -> None:
    scenario = window("one", "1", "two", "2", "three", "3", "four", cited=7)
    assert scenario is not None
    assert [each.content for each in scenario.history] == ["one", "1", "two", "2"]
    assert [each.content for each in scenario.script] == ["three", "four"]
    assert (scenario.turns, scenario.questions, scenario.lesson) == ((5, 7), 2, "a lesson")


def test_a_lesson_at_the_beginning_is_played_from_there() -> None:
    scenario = window("one", "1", "two", "2", "three", cited=1)
    assert scenario is not None
    assert ([each.content for each in scenario.script], scenario.history) == (["one", "two"], ())


def test_a_lesson_that_cites_the_agent_alone_is_played_too() -> None:
    scenario = window("one", "1", "two", cited=2)
    assert scenario is not None
    assert scenario.questions == 2


def test_actions_count_as_words_and_silence_does_not() -> None:
    turns = {
        1: turn(1, "User", "", user_action="click", user_action_description="clicked Refund"),
        2: turn(2, "system", "Be kind."),
        3: turn(3, "User", "   "),
        4: turn(4, "User", "Thanks"),
    }
    scenario = build_scenario(ReplayWindow(7, "ann", (1,), (1, 2, 3, 4)), turns, "", 4)
    assert scenario is not None
    assert scenario.script == (
        ChatMessage("user", "clicked Refund"),
        ChatMessage("system", "Be kind."),
        ChatMessage("user", "Thanks"),
    )
    assert Rollout(("a", "b")).played(scenario)[1] == ChatMessage("assistant", "a")


def test_a_window_that_lost_a_turn_is_not_played() -> None:
    assert build_scenario(ReplayWindow(7, "ann", (1,), (1, 2)), {1: turn(1, "User", "x")}, "", 4) is None


# Cost


@pytest.mark.parametrize(("size", "train", "shown"), [(2, 1, 1), (2, 5, 2), (3, 2, 2)])
def test_a_reflection_is_never_shown_the_same_window_twice(size: int, train: int, shown: int) -> None:
    assert minibatch_size(PlaybookOptimizerConfig(reflection_minibatch_size=size), train) == shown


@pytest.mark.parametrize(
    ("settings", "batch", "held_out", "most"),
    [
        ({}, 1, 2, 15),
        ({}, 2, 2, 15),
        ({"max_metric_calls": 2}, 1, 2, 0),
        ({"max_metric_calls": 3}, 1, 2, 3),
        ({"max_metric_calls": 1_000_000_000}, 2, 2, 666_666_668),
        ({"max_metric_calls": 100}, 2, 6, 101),
        ({"max_metric_calls": 100, "use_merge": False}, 2, 6, 82),
    ],
)
def test_the_most_that_can_be_tried(settings: dict[str, Any], batch: int, held_out: int, most: int) -> None:
    assert most_trials(PlaybookOptimizerConfig(**settings), batch, held_out) == most


# The judge


def opinion(verdict: Any, score: float, likert: int, **more: Any) -> Comparison:
    return Comparison(verdict, score, likert, **more)


def test_two_opinions_that_agree_are_one() -> None:
    judgement = combine_verdicts(opinion("second", 0.9, 5), opinion("first", 0.2, 2))
    assert (judgement.verdict, judgement.likert) == ("candidate", 4)
    assert judgement.score == pytest.approx(0.85)


def test_two_opinions_that_contradict_each_other_are_a_tie() -> None:
    judgement = combine_verdicts(opinion("second", 1.0, 5), opinion("second", 1.0, 5))
    assert (judgement.verdict, judgement.score, judgement.likert) == ("tie", 0.5, 3)


def test_the_verdict_of_each_order_is_kept_as_seen_from_the_candidate() -> None:
    incumbent_first = opinion("second", 0.9, 5, rationale="It greets.")
    candidate_first = opinion("second", 0.75, 4, rationale="It is longer.")
    first, second = combine_verdicts(incumbent_first, candidate_first).orders
    assert (first.shown_first, first.verdict, first.score, first.likert) == ("incumbent", "candidate", 0.9, 5)
    assert (second.shown_first, second.verdict, second.score, second.likert) == ("candidate", "incumbent", 0.25, 2)
    assert (first.rationale, second.rationale) == ("It greets.", "It is longer.")


def test_a_win_in_one_order_and_a_tie_in_the_other_is_a_tie() -> None:
    assert combine_verdicts(opinion("second", 0.8, 4), opinion("tie", 0.5, 3)).verdict == "tie"


def test_feedback_is_turned_to_the_candidate() -> None:
    incumbent_first = opinion("first", 0.1, 1, worse_in_second=("rude",), better_in_second=("short",))
    candidate_first = opinion("second", 0.9, 5, worse_in_first=("rude", "vague"), missing_instructions=("greet",))
    judgement = combine_verdicts(incumbent_first, candidate_first)
    assert (judgement.verdict, judgement.feedback.regressions) == ("incumbent", ("rude", "vague"))
    assert (judgement.feedback.winning_behaviors, judgement.feedback.missing_instructions) == (("short",), ("greet",))


# The decision


def tried(content: str, key: str, judgement: Judgement) -> Trial:
    where = Scenario(key, "ann", 1, (1,), (), ())
    error = judgement.rationale if judgement.verdict == "aborted" else ""
    return Trial(content, where, Rollout(), Rollout(), judgement, error)


def clear(score: float = 0.9) -> Judgement:
    return Judgement("candidate", score, 5)


BOTH = frozenset({"a", "b"})


def decided(*trials: Trial) -> tuple[str, bool]:
    decision = decide(trials, BOTH, CONFIG)
    return decision.best, decision.adopted


def test_the_best_wording_on_the_held_out_windows_wins() -> None:
    good = [tried("good", each, clear(0.8)) for each in BOTH]
    better = [tried("better", each, clear(0.9)) for each in BOTH]
    assert decided(*good, *better) == ("better", True)


def test_what_was_not_tried_in_all_held_out_windows_cannot_win() -> None:
    assert decided(tried("half", "a", clear(1.0)), tried("other", "c", clear(1.0))) == ("", False)


def test_one_clear_win_is_too_few() -> None:
    tie = Judgement("tie", 0.7, 3)
    assert decided(tried("x", "a", clear(1.0)), tried("x", "b", tie)) == ("x", False)


def test_a_wording_that_passes_goes_before_one_with_a_better_mean_that_does_not() -> None:
    steady = [tried("steady", each, clear(0.8)) for each in BOTH]
    brilliant = [tried("brilliant", "a", clear(1.0)), tried("brilliant", "b", Judgement("candidate", 0.74, 3))]
    assert decided(*brilliant, *steady) == ("steady", True)


def test_a_failed_trial_cannot_prove_anything() -> None:
    decision = decide([tried("x", "a", clear(1.0)), tried("x", "b", aborted("lost"))], BOTH, CONFIG)
    assert not decision.adopted
    assert "lost" in decision.reason


# The search thread


async def test_calls_of_the_thread_run_in_the_task_of_the_caller() -> None:
    here = threading.get_ident()

    async def double(number: int) -> int:
        assert threading.get_ident() == here
        return 2 * number

    def work(call: WorkflowCaller) -> list[int]:
        assert threading.get_ident() != here
        return [call(lambda number=number: double(number)) for number in range(3)]  # type: ignore[misc]

    assert await run_in_thread(work) == [0, 2, 4]


async def test_a_call_that_fails_ends_the_thread_and_is_raised_to_the_caller() -> None:
    ended = threading.Event()

    async def fail() -> None:
        raise LookupError("no")

    def work(call: WorkflowCaller) -> None:
        try:
            call(fail)
        except Exception:  # noqa: BLE001  as a library would
            pytest.fail("it went on")
        except SearchStopped:
            ended.set()
            raise

    with pytest.raises(LookupError, match="no"):
        await run_in_thread(work)
    assert await asyncio.to_thread(ended.wait, 5)


async def test_cancelling_the_caller_stops_the_thread() -> None:
    reached, ended = asyncio.Event(), threading.Event()

    async def stand_still() -> None:
        reached.set()
        await asyncio.Event().wait()

    def work(call: WorkflowCaller) -> None:
        try:
            call(stand_still)
        finally:
            ended.set()

    task = asyncio.create_task(run_in_thread(work))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(ended.wait, 5)


async def test_an_error_in_the_thread_is_raised() -> None:
    def work(_: WorkflowCaller) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await run_in_thread(work)


async def test_when_one_fails_the_others_are_finished_first() -> None:
    finished: list[int] = []

    async def act(number: int) -> int:
        await asyncio.sleep(0)
        if number == 1:
            raise LookupError("one")
        await asyncio.sleep(0)
        finished.append(number)
        return number

    with pytest.raises(LookupError, match="one"):
        await gather_all(map(act, range(3)))
    assert finished == [0, 2]
