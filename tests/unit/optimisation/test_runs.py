"""What an optimisation run promises beyond its documentation: cost, order, failures, crashes, cancelling, starting."""

import asyncio
import dataclasses
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from reflexio.aggregation.withdraw import withdraw_user
from reflexio.engine.memory import MemoryJournal
from reflexio.errors import AssistantFailed, NotFound, ProviderRefused, ProviderUnavailable
from reflexio.interactions import erase
from reflexio.jobs.token_budget import USED_UP
from reflexio.learning import stall
from reflexio.models.learning import Status
from reflexio.models.optimisation import ChatMessage, Guidance, PlaybookOptimizationJob
from reflexio.models.paging import Page
from reflexio.optimisation.service import CANCELLED, NO_MODEL, job_key
from reflexio.optimisation.worker import ERASED
from reflexio.ports.chat import A, Messages, Reply
from reflexio.ports.storage import LearningFilter, RequestFilter
from reflexio.providers.scripted import AssistantAnswer, ChatAnswer, ScriptedChat
from tests import parcels
from tests.unit.optimisation.harness import Harness, obedient, running_harness


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[Harness]:
    async with running_harness(tmp_path) as harness:
        yield harness


# Cost


async def test_the_incumbent_is_played_once_in_each_window(harness: Harness) -> None:
    harness.rewrite = lambda asked: parcels.guessing(asked.case)
    await harness.configure(max_metric_calls=60, early_stop_score=1.0)
    await harness.run(await harness.add_playbook(4))
    played = Counter(guidance.content for _, guidance in harness.scripted.asked)
    assert len(played) > 4
    assert played[parcels.INCUMBENT] == 2 * 4


async def test_windows_are_played_side_by_side_up_to_a_limit(harness: Harness) -> None:
    under_way, most = 0, 0

    class Slow:
        async def answer(self, messages: Sequence[ChatMessage], guidance: Guidance) -> str:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            for _ in range(20):
                await asyncio.sleep(0)
            under_way -= 1
            return parcels.answer(guidance.content)

        async def aclose(self) -> None:
            """Nothing is held."""

    harness.assistant = Slow()
    await harness.configure(reflection_minibatch_size=8)
    job = await harness.run(await harness.add_playbook(10))
    assert job.status == "completed"
    assert most == 4


async def test_wordings_that_change_nothing_are_not_judged(harness: Harness) -> None:
    harness.rewrite = lambda asked: {"content": f"{parcels.in_force(asked.case)} Be friendly.", "reason": ""}
    job = await harness.run(await harness.add_playbook())
    assert (job.status, job.judge_calls, harness.judge_model.asked) == ("completed", 0, [])
    assert {each.verdict for each in (await harness.show(job.job_id)).evaluations} == {"tie"}


async def test_a_dry_run_starts_nothing_and_its_bounds_hold(harness: Harness) -> None:
    harness.rewrite = lambda asked: parcels.guessing(asked.case)
    target = await harness.add_playbook(5)
    told = await harness.request_run(target, dry_run=True)
    assert (told.job_id, told.status, harness.scripted.asked) == (None, "pending", [])
    assert (await harness.store.read(lambda tx: tx.optimisations.page(Page(10)))).rows == []
    most = told.estimate
    assert most is not None
    for seed in range(5):
        job = await harness.run(await harness.add_playbook(5), seed=seed)
        assert job.evaluations <= most.evaluations
        assert job.assistant_calls <= most.assistant_calls
        assert job.judge_calls <= most.judge_calls
        assert job.reflection_calls <= most.reflection_calls


async def test_the_spend_of_models_is_recorded(harness: Harness) -> None:
    job = await harness.run(await harness.add_playbook())
    (judge, writer) = sorted(
        await harness.store.read(lambda tx: tx.spending.since("1970-01-01")), key=lambda each: each.spend.model
    )
    assert {judge.operation, writer.operation} == {"optimise"}
    assert (judge.spend.calls, writer.spend.calls) == (job.judge_calls, job.reflection_calls)


# The judge


async def test_a_judge_that_always_likes_the_second_replay_decides_nothing(harness: Harness) -> None:
    harness.judge = lambda asked: {"verdict": "second_clearly", "rationale": "the last word"}
    job = await harness.run(await harness.add_playbook())
    shown = await harness.show(job.job_id)
    assert {
        (evaluation.verdict, evaluation.score, evaluation.likert)
        for evaluation in shown.evaluations
        if evaluation.rationale
    } == {("tie", 0.5, 3)}
    assert job.successor_target_id is None


async def test_the_judge_does_not_know_which_rollout_is_the_candidate(harness: Harness) -> None:
    await harness.run(await harness.add_playbook())
    for asked in harness.judge_model.asked:
        assert "incumbent" not in asked.case
        assert "candidate" not in asked.case
        assert "start a refund." not in asked.case.partition("first replay")[0]


async def test_the_rewriter_sees_nothing_of_held_out_windows(harness: Harness) -> None:
    harness.rewrite = lambda asked: parcels.guessing(asked.case)
    await harness.configure(early_stop_score=1.0)
    await harness.run(await harness.add_playbook(4))
    assert harness.writer_model.asked
    for asked in harness.writer_model.asked:
        assert "parcel 0 " not in asked.case
        assert "parcel 1 " not in asked.case


async def test_the_same_seed_and_answers_make_the_same_search(harness: Harness) -> None:
    harness.rewrite = lambda asked: parcels.guessing(asked.case)
    await harness.configure(max_metric_calls=40, early_stop_score=1.0)
    sources = [await harness.add_user_playbook(number) for number in range(5)]
    runs = [await harness.run(await harness.add_agent_playbook(sources), seed=3) for _ in range(2)]
    first, second = [await harness.show(job.job_id) for job in runs]
    assert [each.content for each in first.candidates] == [each.content for each in second.candidates]
    assert [each.event_type for each in first.events] == [each.event_type for each in second.events]


async def test_an_unreadable_judge_is_an_error_and_never_a_tie(harness: Harness) -> None:
    harness.judge = lambda asked: "I like both!"
    job = await harness.run(await harness.add_playbook())
    shown = await harness.show(job.job_id)
    assert {evaluation.verdict for evaluation in shown.evaluations if evaluation.candidate_id > 1} == {"aborted"}
    assert (job.status, job.successor_target_id) == ("failed", None)
    assert "The judge gave no opinion" in job.decision_reason


async def test_a_judge_without_a_verdict_is_unreadable(harness: Harness) -> None:
    harness.judge = lambda asked: {"score": 0.1, "likert": 5}
    job = await harness.run(await harness.add_playbook())
    assert job.status == "failed"


# Failures


async def test_one_failed_rollout_fails_that_evaluation_and_not_the_run(harness: Harness) -> None:
    def once(messages: Sequence[ChatMessage], guidance: Guidance) -> AssistantAnswer:
        fails = guidance.content != parcels.INCUMBENT and "parcel 3" in messages[0].content
        return AssistantFailed("out of order") if fails else obedient(messages, guidance)

    harness.say = once
    await harness.configure(max_metric_calls=40)
    job = await harness.run(await harness.add_playbook(4))
    shown = await harness.show(job.job_id)
    broken = [evaluation for evaluation in shown.evaluations if evaluation.verdict == "aborted"]
    assert broken
    assert {each.error for each in broken} == {"out of order"}
    assert job.aborted_evaluations == len(broken)
    assert job.status == "completed"


async def test_an_assistant_that_is_down_fails_the_run_at_once(harness: Harness) -> None:
    harness.say = lambda messages, guidance: AssistantFailed("HTTP 500")
    target = await harness.add_playbook()
    job = await harness.run(target)
    assert (job.status, job.assistant_calls, job.reflection_calls) == ("failed", 1, 0)
    assert "HTTP 500" in job.decision_reason
    assert await harness.get(target.id) == target


async def test_held_out_windows_that_cannot_be_judged_end_the_run(harness: Harness) -> None:
    def say(messages: Sequence[ChatMessage], guidance: Guidance) -> AssistantAnswer:
        return AssistantFailed("lost") if "parcel 0" in messages[0].content else obedient(messages, guidance)

    harness.say = say
    job = await harness.run(await harness.add_playbook())
    assert (job.status, job.successor_target_id) == ("failed", None)
    assert "lost" in job.decision_reason


async def test_a_refused_key_fails_the_run_and_stalls(harness: Harness) -> None:
    harness.judge = lambda asked: ProviderRefused("no key", reason="auth")
    job = await harness.run(await harness.add_playbook())
    assert job.status == "failed"
    assert "no key" in job.decision_reason
    held = await harness.store.read(stall.state)
    assert held is not None
    assert held.reason == "auth_error"


async def test_an_unavailable_model_is_retried(harness: Harness) -> None:
    left = [ProviderUnavailable("429"), ProviderUnavailable("429")]
    harness.judge = lambda asked: left.pop() if left else parcels.opinion(asked.case)
    job = await harness.run(await harness.add_playbook())
    assert (job.status, job.aborted_evaluations) == ("completed", 0)
    assert sorted(harness.pauses) == [2.0, 2.0] or sorted(harness.pauses) == [2.0, 4.0]


async def test_a_search_without_new_wordings_ends_with_the_budget(harness: Harness) -> None:
    harness.rewrite = lambda asked: {"content": parcels.in_force(asked.case), "reason": "it is fine"}
    job = await harness.run(await harness.add_playbook())
    assert (job.status, job.evaluations, job.successor_target_id) == ("completed", 0, None)
    assert job.reflection_calls == job.estimate.reflection_calls


async def test_without_a_model_it_says_that_it_needs_one(harness: Harness) -> None:
    harness.has_model = False
    job = await harness.run(await harness.add_playbook())
    assert (job.status, job.decision_reason) == ("skipped", NO_MODEL)


async def test_the_daily_budget_applies_before_and_during_a_run(harness: Harness) -> None:
    await harness.configure(daily_token_budget=0)
    job = await harness.run(await harness.add_playbook())
    assert (job.status, job.decision_reason) == ("skipped", USED_UP)
    await harness.configure(daily_token_budget=100)
    job = await harness.run(await harness.add_playbook())
    assert (job.status, job.decision_reason) == ("failed", USED_UP)
    assert job.reflection_calls + job.judge_calls <= 3


async def test_windows_whose_turns_were_erased_do_not_count(harness: Harness) -> None:
    target = await harness.add_playbook()
    await harness.store.write(lambda tx: tx.requests.remove_some(RequestFilter(user_id="user-1")))
    job = await harness.run(target)
    assert job.status == "skipped"
    assert "their turns were deleted" in job.decision_reason
    assert await harness.get(target.id) == target


async def test_an_erased_user_removes_the_window(harness: Harness) -> None:
    target = await harness.add_playbook()
    await erase.delete_user(harness.store, harness.clock, "user-1", withdraw_user)
    job = await harness.run(target)
    assert (job.status, job.decision_reason[:17]) == ("skipped", "2 source window(s")


async def test_turns_erased_during_the_run_leave_the_playbook_unchanged(harness: Harness) -> None:
    target = await harness.add_playbook()

    async def forget() -> None:
        await harness.store.write(lambda tx: tx.requests.remove_some(RequestFilter(user_id="user-1")))

    waiting: list[asyncio.Task[None]] = []

    def say(messages: Sequence[ChatMessage], guidance: Guidance) -> AssistantAnswer:
        if not waiting:
            waiting.append(asyncio.ensure_future(forget()))
        return obedient(messages, guidance)

    harness.say = say
    job = await harness.run(target)
    assert (job.status, job.decision_reason) == ("skipped", ERASED)
    assert await harness.get(target.id) == target


async def test_evaluations_with_turns_of_an_erased_user_are_removed(harness: Harness) -> None:
    job = await harness.run(await harness.add_playbook())
    await erase.delete_user(harness.store, harness.clock, "user-1", withdraw_user)
    left = (await harness.show(job.job_id)).evaluations
    assert {each.user_id for each in left} == {"user-0", "user-2"}


async def test_events_and_rejected_wordings_made_of_an_erased_users_words_are_removed(harness: Harness) -> None:
    job = await harness.run(await harness.add_playbook())
    assert (await harness.show(job.job_id)).events
    await erase.delete_user(harness.store, harness.clock, "user-1", withdraw_user)
    left = await harness.show(job.job_id)
    assert left.events == []
    assert all(each.is_winner or not each.content for each in left.candidates if each.candidate_index)


async def test_deleting_a_playbook_deletes_its_jobs(harness: Harness) -> None:
    target = await harness.add_playbook()
    job = await harness.run(target)
    where = LearningFilter(target.kind, ids=(target.id,), statuses=None)
    await harness.store.write(lambda tx: tx.learnings.remove(where))
    with pytest.raises(NotFound):
        await harness.show(job.job_id)


async def test_deleted_turns_are_not_shown(harness: Harness) -> None:
    job = await harness.run(await harness.add_playbook())
    await harness.store.write(lambda tx: tx.requests.remove_some(RequestFilter(user_id="user-1")))
    shown = await harness.show(job.job_id)
    assert [evaluation.candidate_rollout for evaluation in shown.evaluations if evaluation.user_id == "user-1"] == [
        [],
        [],
    ]


async def test_a_playbook_that_is_not_there_is_not_found(harness: Harness) -> None:
    target = await harness.add_playbook()
    with pytest.raises(NotFound):
        await harness.request_run(target, agent_playbook_id=9_999)


# Crashes


@dataclass
class Fate:
    """Counts every call by its request, and blocks forever at the next fatal one."""

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

    async def answer(self, messages: Sequence[ChatMessage], guidance: Guidance) -> str:
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


async def revived(harness: Harness, fate: Fate) -> None:
    await harness.start()
    harness.assistant = MortalAssistant(fate)
    harness.judging, harness.writing = MortalChat(fate, harness.judge_model), MortalChat(fate, harness.writer_model)


async def calls_kept(harness: Harness, job_id: int) -> int:
    steps = harness.memory.finished_steps(job_key("default", job_id))
    return sum(name.startswith(("answer/", "judge/", "reflect/")) for name in steps)


async def lived_through(harness: Harness, fate: Fate) -> PlaybookOptimizationJob:
    """Runs a job that is killed at each fatal call and resumed after it."""
    await harness.work.close()
    await revived(harness, fate)
    begun = await harness.request_run(await harness.add_playbook())
    assert begun.job_id is not None
    while fate.deaths:
        await fate.reached.wait()
        # Whatever else was answered by then is also kept: what is killed is this one call.
        while await calls_kept(harness, begun.job_id) < sum(fate.calls.values()):  # noqa: ASYNC110  nobody tells
            await asyncio.sleep(0.001)
        await harness.work.crash()
        fate.reached.clear()
        fate.deaths.pop(0)
        await revived(harness, fate)
    return await harness.wait_until_ended(begun.job_id)


async def test_a_crash_anywhere_resumes_without_repeating_a_finished_call(harness: Harness) -> None:
    unharmed, killed = Fate(), Fate(deaths=[1, 2, 5, 9, 14, 20, 27, 31])
    first = await lived_through(harness, unharmed)
    job = await lived_through(harness, killed)
    assert first.winner_content == job.winner_content is not None
    assert set(killed.calls.values()) == {1}
    assert sum(killed.calls.values()) == sum(unharmed.calls.values()) == 32
    assert (job.assistant_calls, job.judge_calls) == (first.assistant_calls, first.judge_calls)
    before, after = await harness.show(first.job_id), await harness.show(job.job_id)
    assert [each.event_type for each in after.events] == [each.event_type for each in before.events]
    assert [each.content for each in after.candidates] == [each.content for each in before.candidates]
    assert len(after.evaluations) == len(before.evaluations)


async def test_a_job_that_never_reached_the_engine_is_enqueued(harness: Harness) -> None:
    begun = await harness.request_run(await harness.add_playbook())
    assert begun.job_id is not None
    await harness.work.crash()
    harness.memory = MemoryJournal()
    await harness.start()
    await harness.scheduler.start_due()
    assert (await harness.wait_until_ended(begun.job_id)).status == "completed"


async def test_work_that_ends_without_a_result_marks_the_job_failed(harness: Harness) -> None:
    def broken(asked: Messages) -> ChatAnswer:
        raise RuntimeError("a defect")

    harness.rewrite = broken
    begun = await harness.request_run(await harness.add_playbook())
    assert begun.job_id is not None
    job = await harness.wait_until_ended(begun.job_id)
    assert (job.status, job.decision_reason) == ("failed", "a defect")


# Cancelling


async def test_a_cancelled_job_is_skipped_and_changes_nothing(harness: Harness) -> None:
    target = await harness.add_playbook()
    reached, go_on = asyncio.Event(), asyncio.Event()

    class Waiting:
        async def answer(self, messages: Sequence[ChatMessage], guidance: Guidance) -> str:
            reached.set()
            await go_on.wait()
            return parcels.answer(guidance.content)

        async def aclose(self) -> None:
            """Nothing is held."""

    harness.assistant = Waiting()
    begun = await harness.request_run(target)
    assert begun.job_id is not None
    await reached.wait()
    assert (await harness.request_run(target)).job_id == begun.job_id
    _, stopped = await harness.service.cancel(harness.store, begun.job_id)
    go_on.set()
    assert stopped
    assert (await harness.service.cancel(harness.store, begun.job_id))[1] is False
    await harness.work.close()
    job = (await harness.show(begun.job_id)).job
    assert (job.status, job.decision_reason) == ("skipped", CANCELLED)
    assert (await harness.get(target.id)).status is Status.CURRENT


# Automatic start


async def test_pending_playbooks_with_windows_are_started_automatically_once(harness: Harness) -> None:
    target = await harness.add_playbook()
    await harness.add_agent_playbook([])
    (begun,) = await harness.scheduler.start_due("aggregation")
    assert (begun.target_id, begun.started_by) == (target.id, "aggregation")
    assert await harness.scheduler.start_due() == []
    job = await harness.wait_until_ended(begun.job_id)
    assert job.successor_target_id is not None
    assert await harness.scheduler.start_due() == []


async def test_the_scheduler_looks_at_once_and_an_aggregation_wakes_it(harness: Harness) -> None:
    first = await harness.add_playbook()
    looking = asyncio.create_task(harness.scheduler.run())
    begun = await harness.wait_for_job(first)
    assert begun.started_by == "schedule"
    second = await harness.add_playbook()
    await harness.scheduler.on_aggregated(harness.store, [second.id])
    begun = await harness.wait_for_job(second)
    assert begun.started_by == "aggregation"
    looking.cancel()
    await asyncio.gather(looking, return_exceptions=True)


async def test_an_unimproved_playbook_is_tried_again_when_it_changes(harness: Harness) -> None:
    harness.rewrite = lambda asked: {"content": parcels.in_force(asked.case), "reason": ""}
    await harness.add_playbook()
    (begun,) = await harness.scheduler.start_due()
    await harness.wait_until_ended(begun.job_id)
    assert await harness.scheduler.start_due() == []
    await harness.configure(max_metric_calls=10)
    assert len(await harness.scheduler.start_due()) == 1


async def test_after_two_failures_in_a_row_a_playbook_waits_for_the_cooldown(harness: Harness) -> None:
    harness.say = lambda messages, guidance: AssistantFailed("down")
    await harness.add_playbook()
    for _ in range(2):
        (begun,) = await harness.scheduler.start_due()
        assert (await harness.wait_until_ended(begun.job_id)).status == "failed"
    assert await harness.scheduler.start_due() == []
    harness.clock.time += 3600
    assert len(await harness.scheduler.start_due()) == 1


async def test_nothing_starts_automatically_while_learning_is_stalled_or_the_budget_is_empty(harness: Harness) -> None:
    await harness.add_playbook()
    await harness.store.write(lambda tx: stall.enter(tx, "auth_error", "no key", 1))
    assert await harness.scheduler.start_due() == []
    await harness.store.write(stall.clear)
    await harness.configure(daily_token_budget=0)
    assert await harness.scheduler.start_due() == []


async def test_nothing_starts_automatically_without_a_model(harness: Harness) -> None:
    target = await harness.add_playbook()
    harness.has_model = False
    assert (await harness.run(target)).status == "skipped"
    assert await harness.scheduler.start_due() == []
    harness.has_model = True
    assert len(await harness.scheduler.start_due()) == 1


async def test_a_cancelled_job_is_not_started_again(harness: Harness) -> None:
    await harness.add_playbook()
    (begun,) = await harness.scheduler.start_due()
    await harness.service.cancel(harness.store, begun.job_id)
    assert await harness.scheduler.start_due() == []


async def test_more_windows_give_a_skipped_playbook_another_chance(harness: Harness) -> None:
    target = await harness.add_playbook(2)
    (begun,) = await harness.scheduler.start_due()
    assert begun.status == "skipped"
    assert await harness.scheduler.start_due() == []
    windows = [*target.details["source_windows"], await harness.add_user_playbook(2)]
    more = dataclasses.replace(target, details={**target.details, "source_windows": windows})
    await harness.store.write(lambda tx: tx.learnings.replace(more))
    (begun,) = await harness.scheduler.start_due()
    assert (await harness.wait_until_ended(begun.job_id)).status == "completed"


async def test_a_run_that_succeeds_ends_a_stall(harness: Harness) -> None:
    await harness.store.write(lambda tx: stall.enter(tx, "auth_error", "no key", 1))
    assert (await harness.run(await harness.add_playbook())).status == "completed"
    assert await harness.store.read(stall.state) is None


async def test_an_automatic_start_waits_a_random_time(harness: Harness) -> None:
    await harness.configure(scheduler_jitter_seconds=0.5)
    await harness.add_playbook()
    await harness.scheduler.start_due()
    assert 0 <= harness.pauses[0] <= 0.5
