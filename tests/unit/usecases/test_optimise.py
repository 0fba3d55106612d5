"""What a search for better wording promises beyond its page: cost, order, failures, crashes, cancelling, starting."""

import asyncio
import dataclasses
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from reflexio.engine.memory import MemoryJournal
from reflexio.errors import AssistantFailed, NotFound, ProviderRefused, ProviderUnavailable
from reflexio.models.optimisation import PlaybookOptimizationJob
from reflexio.models.paging import Page
from reflexio.models.rollout import Guidance, Message
from reflexio.models.status import Status
from reflexio.ports.chat import A, Messages, Reply
from reflexio.ports.storage import RequestFilter
from reflexio.providers.scripted import AssistantAnswer, ChatAnswer, ScriptedChat
from reflexio.usecases import erase, stall
from reflexio.usecases.optimise import BUDGET, CANCELLED, NO_MODEL, key
from reflexio.usecases.optimise_run import ERASED
from tests import parcels
from tests.unit.usecases.optimisation import House, furnished, obedient


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with furnished(tmp_path) as house:
        yield house


# Cost


async def test_the_incumbent_is_played_once_in_each_window(house: House) -> None:
    house.rewrite = lambda asked: parcels.guessing(asked.case)
    await house.configure(max_metric_calls=60, early_stop_score=1.0)
    await house.run(await house.playbook(4))
    played = Counter(guidance.content for _, guidance in house.scripted.asked)
    assert len(played) > 4
    assert played[parcels.INCUMBENT] == 2 * 4


async def test_windows_are_played_side_by_side_up_to_a_limit(house: House) -> None:
    under_way, most = 0, 0

    class Slow:
        async def answer(self, messages: Sequence[Message], guidance: Guidance) -> str:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            for _ in range(20):
                await asyncio.sleep(0)
            under_way -= 1
            return parcels.answer(guidance.content)

        async def aclose(self) -> None:
            """Nothing is held."""

    house.assistant = Slow()
    await house.configure(reflection_minibatch_size=8)
    job = await house.run(await house.playbook(10))
    assert job.status == "completed"
    assert most == 4


async def test_wordings_that_change_nothing_are_not_judged(house: House) -> None:
    house.rewrite = lambda asked: {"content": f"{parcels.in_force(asked.case)} Be friendly.", "reason": ""}
    job = await house.run(await house.playbook())
    assert (job.status, job.judge_calls, house.judge_model.asked) == ("completed", 0, [])
    assert {each.verdict for each in (await house.shown(job.job_id)).evaluations} == {"tie"}


async def test_a_dry_run_begins_nothing_and_its_bounds_hold(house: House) -> None:
    house.rewrite = lambda asked: parcels.guessing(asked.case)
    target = await house.playbook(5)
    told = await house.ask(target, dry_run=True)
    assert (told.job_id, told.status, house.scripted.asked) == (None, "pending", [])
    assert (await house.store.read(lambda tx: tx.optimisations.page(Page(10)))).rows == []
    most = told.estimate
    assert most is not None
    for seed in range(5):
        job = await house.run(await house.playbook(5), seed=seed)
        assert job.evaluations <= most.evaluations
        assert job.assistant_calls <= most.assistant_calls
        assert job.judge_calls <= most.judge_calls
        assert job.reflection_calls <= most.reflection_calls


async def test_what_models_cost_is_accounted(house: House) -> None:
    job = await house.run(await house.playbook())
    (judge, writer) = sorted(
        await house.store.read(lambda tx: tx.spending.since("1970-01-01")), key=lambda each: each.spend.model
    )
    assert {judge.operation, writer.operation} == {"optimise"}
    assert (judge.spend.calls, writer.spend.calls) == (job.judge_calls, job.reflection_calls)


# The judge


async def test_a_judge_that_always_likes_the_second_replay_decides_nothing(house: House) -> None:
    house.judge = lambda asked: {"verdict": "second", "score": 1.0, "likert": 5, "rationale": "the last word"}
    job = await house.run(await house.playbook())
    shown = await house.shown(job.job_id)
    assert {(each.verdict, each.score, each.likert) for each in shown.evaluations if each.rationale} == {
        ("tie", 0.5, 3)
    }
    assert job.successor_target_id is None


async def test_the_judge_is_not_told_which_is_which(house: House) -> None:
    await house.run(await house.playbook())
    for asked in house.judge_model.asked:
        assert "incumbent" not in asked.case
        assert "candidate" not in asked.case
        assert "start a refund." not in asked.case.partition("first replay")[0]


async def test_the_rewriter_sees_nothing_of_held_out_windows(house: House) -> None:
    house.rewrite = lambda asked: parcels.guessing(asked.case)
    await house.configure(early_stop_score=1.0)
    await house.run(await house.playbook(4))
    assert house.writer_model.asked
    for asked in house.writer_model.asked:
        assert "parcel 0 " not in asked.case
        assert "parcel 1 " not in asked.case


async def test_the_same_seed_and_answers_make_the_same_search(house: House) -> None:
    house.rewrite = lambda asked: parcels.guessing(asked.case)
    await house.configure(max_metric_calls=40, early_stop_score=1.0)
    sources = [await house.lesson(number) for number in range(5)]
    runs = [await house.run(await house.stored(sources), seed=3) for _ in range(2)]
    first, second = [await house.shown(job.job_id) for job in runs]
    assert [each.content for each in first.candidates] == [each.content for each in second.candidates]
    assert [each.event_type for each in first.events] == [each.event_type for each in second.events]


async def test_an_unreadable_judge_is_an_error_and_never_a_tie(house: House) -> None:
    house.judge = lambda asked: "I like both!"
    job = await house.run(await house.playbook())
    shown = await house.shown(job.job_id)
    assert {each.verdict for each in shown.evaluations if each.candidate_id > 1} == {"aborted"}
    assert (job.status, job.successor_target_id) == ("failed", None)
    assert "The judge gave no opinion" in job.decision_reason


async def test_a_judge_whose_mark_contradicts_its_verdict_is_not_understood(house: House) -> None:
    house.judge = lambda asked: {"verdict": "second", "score": 0.1, "likert": 5}
    job = await house.run(await house.playbook())
    assert job.status == "failed"


# Failures


async def test_one_failed_rollout_fails_that_evaluation_and_not_the_run(house: House) -> None:
    def once(messages: Sequence[Message], guidance: Guidance) -> AssistantAnswer:
        fails = guidance.content != parcels.INCUMBENT and "parcel 3" in messages[0].content
        return AssistantFailed("out of order") if fails else obedient(messages, guidance)

    house.say = once
    await house.configure(max_metric_calls=40)
    job = await house.run(await house.playbook(4))
    shown = await house.shown(job.job_id)
    broken = [each for each in shown.evaluations if each.verdict == "aborted"]
    assert broken
    assert {each.error for each in broken} == {"out of order"}
    assert job.aborted_evaluations == len(broken)
    assert job.status == "completed"


async def test_an_assistant_that_is_down_fails_the_run_at_once(house: House) -> None:
    house.say = lambda messages, guidance: AssistantFailed("HTTP 500")
    target = await house.playbook()
    job = await house.run(target)
    assert (job.status, job.assistant_calls, job.reflection_calls) == ("failed", 1, 0)
    assert "HTTP 500" in job.decision_reason
    assert await house.row(target.id) == target


async def test_held_out_windows_that_cannot_be_judged_end_the_run(house: House) -> None:
    def say(messages: Sequence[Message], guidance: Guidance) -> AssistantAnswer:
        return AssistantFailed("lost") if "parcel 0" in messages[0].content else obedient(messages, guidance)

    house.say = say
    job = await house.run(await house.playbook())
    assert (job.status, job.successor_target_id) == ("failed", None)
    assert "lost" in job.decision_reason


async def test_a_refused_key_fails_the_run_and_stalls(house: House) -> None:
    house.judge = lambda asked: ProviderRefused("no key", reason="auth")
    job = await house.run(await house.playbook())
    assert job.status == "failed"
    assert "no key" in job.decision_reason
    held = await house.store.read(stall.state)
    assert held is not None
    assert held.reason == "auth_error"


async def test_a_model_that_is_away_for_a_moment_is_asked_again(house: House) -> None:
    left = [ProviderUnavailable("429"), ProviderUnavailable("429")]
    house.judge = lambda asked: left.pop() if left else parcels.opinion(asked.case)
    job = await house.run(await house.playbook())
    assert (job.status, job.aborted_evaluations) == ("completed", 0)
    assert sorted(house.pauses) == [2.0, 2.0] or sorted(house.pauses) == [2.0, 4.0]


async def test_a_reflection_that_brings_nothing_ends_with_the_budget(house: House) -> None:
    house.rewrite = lambda asked: {"content": parcels.in_force(asked.case), "reason": "it is fine"}
    job = await house.run(await house.playbook())
    assert (job.status, job.evaluations, job.successor_target_id) == ("completed", 0, None)
    assert job.reflection_calls == job.estimate.reflection_calls


async def test_without_a_model_it_says_that_it_needs_one(house: House) -> None:
    house.has_model = False
    job = await house.run(await house.playbook())
    assert (job.status, job.decision_reason) == ("skipped", NO_MODEL)


async def test_the_daily_budget_applies_before_and_during_a_run(house: House) -> None:
    await house.configure(daily_token_budget=0)
    job = await house.run(await house.playbook())
    assert (job.status, job.decision_reason) == ("skipped", BUDGET)
    await house.configure(daily_token_budget=100)
    job = await house.run(await house.playbook())
    assert (job.status, job.decision_reason) == ("failed", BUDGET)
    assert job.reflection_calls + job.judge_calls <= 3


async def test_windows_whose_turns_were_erased_do_not_count(house: House) -> None:
    target = await house.playbook()
    await house.store.write(lambda tx: tx.requests.remove(RequestFilter(user_id="user-1")))
    job = await house.run(target)
    assert job.status == "skipped"
    assert "their turns were deleted" in job.decision_reason
    assert await house.row(target.id) == target


async def test_a_user_who_leaves_takes_the_window_along(house: House) -> None:
    target = await house.playbook()
    await erase.user(house.store, house.clock, "user-1")
    job = await house.run(target)
    assert (job.status, job.decision_reason[:17]) == ("skipped", "2 source window(s")


async def test_turns_that_are_erased_during_the_run_leave_all_as_it_was(house: House) -> None:
    target = await house.playbook()

    async def forget() -> None:
        await house.store.write(lambda tx: tx.requests.remove(RequestFilter(user_id="user-1")))

    waiting: list[asyncio.Task[None]] = []

    def say(messages: Sequence[Message], guidance: Guidance) -> AssistantAnswer:
        if not waiting:
            waiting.append(asyncio.ensure_future(forget()))
        return obedient(messages, guidance)

    house.say = say
    job = await house.run(target)
    assert (job.status, job.decision_reason) == ("skipped", ERASED)
    assert await house.row(target.id) == target


async def test_what_was_tried_with_turns_of_a_user_goes_with_the_user(house: House) -> None:
    job = await house.run(await house.playbook())
    await erase.user(house.store, house.clock, "user-1")
    left = (await house.shown(job.job_id)).evaluations
    assert {each.user_id for each in left} == {"user-0", "user-2"}


async def test_words_that_were_deleted_are_not_shown_any_more(house: House) -> None:
    job = await house.run(await house.playbook())
    await house.store.write(lambda tx: tx.requests.remove(RequestFilter(user_id="user-1")))
    shown = await house.shown(job.job_id)
    assert [each.candidate_rollout for each in shown.evaluations if each.user_id == "user-1"] == [[], []]


async def test_a_playbook_that_is_not_there_is_not_found(house: House) -> None:
    target = await house.playbook()
    with pytest.raises(NotFound):
        await house.ask(target, agent_playbook_id=9_999)


# Crashes


@dataclass
class Fate:
    """Counts every call by what is asked, and stands still for ever at the next one that is fatal."""

    deaths: list[int] = field(default_factory=list)
    calls: Counter[str] = field(default_factory=Counter)
    reached: asyncio.Event = field(default_factory=asyncio.Event)

    async def meet(self, what: str) -> None:
        if self.deaths and sum(self.calls.values()) + 1 == self.deaths[0]:
            self.reached.set()
            await asyncio.Event().wait()
        self.calls[what] += 1


@dataclass
class MortalAssistant:
    fate: Fate

    async def answer(self, messages: Sequence[Message], guidance: Guidance) -> str:
        await self.fate.meet(f"{guidance.content} {[each.content for each in messages]}")
        return parcels.answer(guidance.content)

    async def aclose(self) -> None:
        """Nothing is held."""


@dataclass
class MortalChat:
    fate: Fate
    chat: ScriptedChat

    @property
    def name(self) -> str:
        return self.chat.name

    async def ask(self, messages: Messages, shape: type[A]) -> Reply[A]:
        await self.fate.meet(messages.case)
        return await self.chat.ask(messages, shape)

    async def aclose(self) -> None:
        """Nothing is held."""


async def revived(house: House, fate: Fate) -> None:
    await house.start()
    house.assistant = MortalAssistant(fate)
    house.judging, house.writing = MortalChat(fate, house.judge_model), MortalChat(fate, house.writer_model)


async def calls_kept(house: House, job_id: int) -> int:
    (asked,) = [each for each in await house.memory.unfinished() if each.job.key == key("default", job_id)]
    return sum(name.startswith(("answer/", "judge/", "reflect/")) for name in asked.results)


async def lived_through(house: House, fate: Fate) -> PlaybookOptimizationJob:
    """A run that is killed at each of the fatal calls, and goes on after each."""
    await house.work.close()
    await revived(house, fate)
    begun = await house.ask(await house.playbook())
    assert begun.job_id is not None
    while fate.deaths:
        await fate.reached.wait()
        # Whatever else was answered by then is also kept: what is killed is this one call.
        while await calls_kept(house, begun.job_id) < sum(fate.calls.values()):  # noqa: ASYNC110  nobody tells
            await asyncio.sleep(0.001)
        await house.work.crash()
        fate.reached.clear()
        fate.deaths.pop(0)
        await revived(house, fate)
    return await house.ended(begun.job_id)


async def test_a_crash_anywhere_resumes_without_repeating_a_finished_call(house: House) -> None:
    unharmed, killed = Fate(), Fate(deaths=[1, 2, 5, 9, 14, 20, 27, 31])
    first = await lived_through(house, unharmed)
    job = await lived_through(house, killed)
    assert first.winner_content == job.winner_content is not None
    assert set(killed.calls.values()) == {1}
    assert sum(killed.calls.values()) == sum(unharmed.calls.values()) == 32
    assert (job.assistant_calls, job.judge_calls) == (first.assistant_calls, first.judge_calls)
    before, after = await house.shown(first.job_id), await house.shown(job.job_id)
    assert [each.event_type for each in after.events] == [each.event_type for each in before.events]
    assert [each.content for each in after.candidates] == [each.content for each in before.candidates]
    assert len(after.evaluations) == len(before.evaluations)


async def test_a_job_that_never_reached_the_engine_is_taken_up(house: House) -> None:
    begun = await house.ask(await house.playbook())
    assert begun.job_id is not None
    await house.work.crash()
    house.memory = MemoryJournal()
    await house.start()
    await house.optimising.begin_due()
    assert (await house.ended(begun.job_id)).status == "completed"


async def test_work_that_ended_without_a_word_is_told_as_failed(house: House) -> None:
    def broken(asked: Messages) -> ChatAnswer:
        raise RuntimeError("a defect")

    house.rewrite = broken
    begun = await house.ask(await house.playbook())
    assert begun.job_id is not None
    job = await house.ended(begun.job_id)
    assert (job.status, job.decision_reason) == ("failed", "a defect")


# Cancelling


async def test_a_cancelled_job_is_skipped_and_changes_nothing(house: House) -> None:
    target = await house.playbook()
    reached, go_on = asyncio.Event(), asyncio.Event()

    class Waiting:
        async def answer(self, messages: Sequence[Message], guidance: Guidance) -> str:
            reached.set()
            await go_on.wait()
            return parcels.answer(guidance.content)

        async def aclose(self) -> None:
            """Nothing is held."""

    house.assistant = Waiting()
    begun = await house.ask(target)
    assert begun.job_id is not None
    await reached.wait()
    assert (await house.ask(target)).job_id == begun.job_id
    _, stopped = await house.optimiser.cancel(house.store, begun.job_id)
    go_on.set()
    assert stopped
    assert (await house.optimiser.cancel(house.store, begun.job_id))[1] is False
    await house.work.close()
    job = (await house.shown(begun.job_id)).job
    assert (job.status, job.decision_reason) == ("skipped", CANCELLED)
    assert (await house.row(target.id)).status is Status.CURRENT


# Starting by itself


async def test_pending_playbooks_with_windows_are_begun_by_themselves_once(house: House) -> None:
    target = await house.playbook()
    await house.stored([])
    (begun,) = await house.optimising.begin_due("aggregation")
    assert (begun.target_id, begun.started_by) == (target.id, "aggregation")
    assert await house.optimising.begin_due() == []
    job = await house.ended(begun.job_id)
    assert job.successor_target_id is not None
    assert await house.optimising.begin_due() == []


async def test_the_schedule_looks_at_once_and_an_aggregation_wakes_it(house: House) -> None:
    first = await house.playbook()
    looking = asyncio.create_task(house.optimising.keep_optimising())
    begun = await house.begun(first)
    assert begun.started_by == "schedule"
    second = await house.playbook()
    await house.optimising.written(house.store, [second.id])
    begun = await house.begun(second)
    assert begun.started_by == "aggregation"
    looking.cancel()
    await asyncio.gather(looking, return_exceptions=True)


async def test_what_was_not_improved_is_tried_again_when_it_changes(house: House) -> None:
    house.rewrite = lambda asked: {"content": parcels.in_force(asked.case), "reason": ""}
    await house.playbook()
    (begun,) = await house.optimising.begin_due()
    await house.ended(begun.job_id)
    assert await house.optimising.begin_due() == []
    await house.configure(max_metric_calls=10)
    assert len(await house.optimising.begin_due()) == 1


async def test_after_two_failures_in_a_row_a_playbook_rests(house: House) -> None:
    house.say = lambda messages, guidance: AssistantFailed("down")
    await house.playbook()
    for _ in range(2):
        (begun,) = await house.optimising.begin_due()
        assert (await house.ended(begun.job_id)).status == "failed"
    assert await house.optimising.begin_due() == []
    house.clock.time += 3600
    assert len(await house.optimising.begin_due()) == 1


async def test_nothing_begins_by_itself_while_learning_is_stalled_or_the_budget_is_empty(house: House) -> None:
    await house.playbook()
    await house.store.write(lambda tx: stall.enter(tx, "auth_error", "no key", 1))
    assert await house.optimising.begin_due() == []
    await house.store.write(stall.clear)
    await house.configure(daily_token_budget=0)
    assert await house.optimising.begin_due() == []


async def test_nothing_begins_by_itself_while_nobody_can_be_asked(house: House) -> None:
    target = await house.playbook()
    house.has_model = False
    assert (await house.run(target)).status == "skipped"
    assert await house.optimising.begin_due() == []
    house.has_model = True
    assert len(await house.optimising.begin_due()) == 1


async def test_what_was_cancelled_is_not_taken_up_again(house: House) -> None:
    await house.playbook()
    (begun,) = await house.optimising.begin_due()
    await house.optimiser.cancel(house.store, begun.job_id)
    assert await house.optimising.begin_due() == []


async def test_more_windows_give_a_skipped_playbook_another_chance(house: House) -> None:
    target = await house.playbook(2)
    (begun,) = await house.optimising.begin_due()
    assert begun.status == "skipped"
    assert await house.optimising.begin_due() == []
    windows = [*target.details["source_windows"], await house.lesson(2)]
    more = dataclasses.replace(target, details={**target.details, "source_windows": windows})
    await house.store.write(lambda tx: tx.learnings.replace(more))
    (begun,) = await house.optimising.begin_due()
    assert (await house.ended(begun.job_id)).status == "completed"


async def test_a_run_that_succeeds_ends_a_stall(house: House) -> None:
    await house.store.write(lambda tx: stall.enter(tx, "auth_error", "no key", 1))
    assert (await house.run(await house.playbook())).status == "completed"
    assert await house.store.read(stall.state) is None


async def test_a_start_by_itself_waits_a_random_moment(house: House) -> None:
    await house.configure(scheduler_jitter_seconds=0.5)
    await house.playbook()
    await house.optimising.begin_due()
    assert 0 <= house.pauses[0] <= 0.5
