"""Playbook optimisation as its documentation page describes it: each test is one sentence of that page."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from reflexio.models.config import Config, PlaybookOptimizerConfig
from reflexio.models.learning import Kind, Learning, PlaybookStatus, Status
from reflexio.models.optimisation import ChatMessage, Guidance
from reflexio.models.paging import Page
from reflexio.ports.storage import LearningFilter, Tx
from reflexio.providers.scripted import AssistantAnswer
from tests import parcels
from tests.unit.optimisation.harness import Harness, running_harness

SEED_CONFIG = {
    "enabled": False,
    "optimize_agent_playbooks": True,
    "optimize_user_playbooks": False,
    "auto_update_pending_agent_playbooks": True,
    "auto_update_user_playbooks": False,
    "webhook_url": "https://assistant.example.com/reflexio-rollout",
    "assistant_script_path": None,
    "assistant_script_args": [],
    "max_metric_calls": 20,
    "max_turns": 4,
    "early_stop_score": 0.9,
    "max_validation_windows": 2,
}


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[Harness]:
    async with running_harness(tmp_path) as harness:
        yield harness


# Reflexio can optionally optimize playbook wording with a GEPA-backed candidate search loop.


async def test_playbook_wording_is_optimised_with_a_candidate_search(harness: Harness) -> None:
    job = await harness.run(await harness.add_playbook())
    assert (job.status, job.optimizer_kind) == ("completed", "gepa")
    assert job.winner_content is not None
    assert all(deed in job.winner_content for deed in parcels.DEEDS)
    told = {event.event_type for event in (await harness.show(job.job_id)).events}
    assert {"optimization_start", "candidate_accepted", "valset_evaluated", "optimization_end"} <= told


# The optimizer is disabled by default.


async def test_the_optimizer_is_disabled_by_default(harness: Harness) -> None:
    assert PlaybookOptimizerConfig().enabled is False
    await harness.configure(enabled=False)
    job = await harness.run(await harness.add_playbook())
    assert (job.status, harness.scripted.asked) == ("skipped", [])
    assert "disabled" in job.decision_reason
    assert await harness.scheduler.start_due() == []


# It compares real assistant behavior: for each source interaction window it calls the configured assistant backend
# twice with the same user turns, incumbent and candidate. Only the injected playbook content changes.


async def test_both_rollouts_of_a_window_have_the_same_user_turns_and_only_the_playbook_content_changes(
    harness: Harness,
) -> None:
    target = await harness.add_playbook()
    await harness.run(target)
    by_wording: dict[str, set[tuple[str, ...]]] = {}
    for messages, guidance in harness.scripted.asked:
        assert (guidance.id, guidance.trigger) == (target.id, parcels.TRIGGER)
        spoken = tuple(each.content for each in messages if each.role == "user")
        by_wording.setdefault(guidance.content, set()).add(spoken)
    assert len(by_wording) == 3
    assert len({frozenset(spoken) for spoken in by_wording.values()}) == 1


# A judge model scores the paired rollouts and records actionable feedback.


async def test_the_judge_records_actionable_feedback(harness: Harness) -> None:
    job = await harness.run(await harness.add_playbook())
    shown = await harness.show(job.job_id)
    judged = [
        evaluation for evaluation in shown.evaluations if evaluation.candidate_id == shown.candidates[1].candidate_id
    ]
    assert {(each.verdict, each.score, each.likert) for each in judged} == {("candidate", 0.75, 4)}
    for each in judged:
        assert each.rationale
        assert each.feedback.missing_instructions == [parcels.DEEDS[1]]
        assert each.feedback.recommended_mutations == [f"Say to {parcels.DEEDS[1]}."]
        assert [line.role for line in each.candidate_rollout] == ["user", "assistant", "user", "assistant"]
        assert each.incumbent_rollout[1].content == "I start a refund."


async def test_regressions_are_recorded_for_the_candidate(harness: Harness) -> None:
    harness.rewrite = lambda asked: {"content": "Start a refund, whatever the user says.", "reason": "worse"}
    job = await harness.run(await harness.add_playbook(content=parcels.BEST))
    shown = await harness.show(job.job_id)
    assert [
        evaluation.feedback.regressions for evaluation in shown.evaluations if evaluation.verdict == "incumbent"
    ] == [["It does less of what was taught."]]


# By default, up to two source windows are held out for validation and all remaining ones are the training pool.


@pytest.mark.parametrize(("windows", "train", "held_out"), [(3, 1, 2), (4, 2, 2), (7, 5, 2)])
async def test_up_to_two_windows_are_held_out_and_all_others_are_the_training_pool(
    harness: Harness, windows: int, train: int, held_out: int
) -> None:
    estimate = (await harness.request_run(await harness.add_playbook(windows), dry_run=True)).estimate
    assert estimate is not None
    assert (estimate.train_windows, estimate.validation_windows) == (train, held_out)


# GEPA samples training minibatches from that pool, while commit thresholds are checked only against held-out windows.


async def test_minibatches_come_from_the_training_pool(harness: Harness) -> None:
    job = await harness.run(await harness.add_playbook(5))
    shown = await harness.show(job.job_id)
    sampled = [event.payload["minibatch_ids"] for event in shown.events if event.event_type == "minibatch_sampled"]
    assert sampled
    assert all(len(set(each)) <= PlaybookOptimizerConfig().reflection_minibatch_size for each in sampled)
    assert {event.payload["trainset_size"] for event in shown.events if event.event_type == "minibatch_sampled"} == {3}


async def test_commit_thresholds_are_checked_only_against_held_out_windows(harness: Harness) -> None:
    """In the training window every change helps; in the others none does."""

    def say(messages: Sequence[ChatMessage], guidance: Guidance) -> AssistantAnswer:
        is_training = "parcel 2 " in messages[0].content
        return parcels.answer(guidance.content) if is_training else "I start a refund."

    harness.say = say
    target = await harness.add_playbook()
    job = await harness.run(target)
    assert (job.status, job.successor_target_id, job.best_score) == ("completed", None, 0.5)
    assert "incumbent stays" in job.decision_reason
    assert (await harness.get(target.id)).status is Status.CURRENT


# If the validation holdout is smaller than min_commit_windows, Reflexio skips GEPA.
# Targets with one or two source windows are skipped under the defaults.


@pytest.mark.parametrize("windows", [0, 1, 2])
async def test_too_few_windows_are_skipped_under_the_defaults(harness: Harness, windows: int) -> None:
    job = await harness.run(await harness.add_playbook(windows))
    assert job.status == "skipped"
    assert ("min_commit_windows" if windows else "no source windows") in job.decision_reason
    assert harness.scripted.asked == []


# Lower min_commit_windows to 1 to opt into single-window or two-window optimization.


@pytest.mark.parametrize("windows", [1, 2])
async def test_with_min_commit_windows_1_one_or_two_windows_are_enough(harness: Harness, windows: int) -> None:
    await harness.configure(min_commit_windows=1)
    job = await harness.run(await harness.add_playbook(windows))
    assert job.status == "completed"
    assert job.successor_target_id is not None
    assert (job.estimate.train_windows, job.estimate.validation_windows) == (1, 1)


# Reflexio also caches GEPA evaluations so the same candidate/window pair is never scored twice.


async def test_the_same_candidate_and_window_are_never_scored_twice(harness: Harness) -> None:
    harness.rewrite = lambda asked: parcels.guessing(asked.case)
    await harness.configure(early_stop_score=1.0, max_metric_calls=40)
    job = await harness.run(await harness.add_playbook(4))
    asked = Counter((guidance.content, tuple(messages)) for messages, guidance in harness.scripted.asked)
    assert set(asked.values()) == {1}
    assert max(Counter(each.case for each in harness.judge_model.asked).values()) == 1
    shown = await harness.show(job.job_id)
    pairs = Counter(
        (evaluation.candidate_id, tuple(evaluation.source_interaction_ids)) for evaluation in shown.evaluations
    )
    assert set(pairs.values()) == {1}
    assert job.assistant_calls == len(harness.scripted.asked)
    assert job.judge_calls == len(harness.judge_model.asked)


async def test_a_held_out_window_has_a_score_of_its_own(harness: Harness) -> None:
    """GEPA numbers windows from 0 in either set, and remembers scores by number."""
    job = await harness.run(await harness.add_playbook(5))
    shown = await harness.show(job.job_id)
    winner = next(candidate for candidate in shown.candidates if candidate.is_winner)
    tried = [evaluation for evaluation in shown.evaluations if evaluation.candidate_id == winner.candidate_id]
    assert len([each for each in tried if each.is_validation]) == 2


# In single-window mode the same source window is used for training and validation.


async def test_a_single_window_is_used_for_training_and_validation(harness: Harness) -> None:
    await harness.configure(min_commit_windows=1)
    job = await harness.run(await harness.add_playbook(1))
    shown = await harness.show(job.job_id)
    assert len({tuple(evaluation.source_interaction_ids) for evaluation in shown.evaluations}) == 1
    assert all(evaluation.is_validation for evaluation in shown.evaluations)
    assert len(harness.scripted.asked) == 2 * len(shown.candidates)


# The default GEPA budget is max_metric_calls=20 and max_turns=4.


async def test_the_default_budget_is_20_metric_calls_and_4_turns(harness: Harness) -> None:
    assert (PlaybookOptimizerConfig().max_metric_calls, PlaybookOptimizerConfig().max_turns) == (20, 4)
    harness.rewrite = lambda asked: {"content": f"{parcels.in_force(asked.case)} Be friendly.", "reason": "no use"}
    said = [f"line {number}" for number in range(13)]
    turns = [await harness.add_conversation(*said) for _ in range(3)]
    job = await harness.run(await harness.add_agent_playbook(parcels.windows([each[:1] for each in turns])))
    assert 20 <= job.metric_calls < 26
    asked = Counter(messages[0].content for messages, _ in harness.scripted.asked)
    longest = max(sum(each.role == "user" for each in messages) for messages, _ in harness.scripted.asked)
    assert (longest, set(asked)) == (4, {"line 0"})


async def test_max_turns_bounds_the_answers_and_earlier_turns_are_history(harness: Harness) -> None:
    await harness.configure(max_turns=2, min_commit_windows=1)
    turns = await harness.add_conversation("one", "1", "two", "2", "three", "3", "four", "4", "five")
    await harness.run(
        await harness.add_agent_playbook([{"user_playbook_id": 99, "source_interaction_ids": [turns[6]]}])
    )
    first = [[(each.role, each.content) for each in messages] for messages, _ in harness.scripted.asked[:2]]
    before = [("user", "one"), ("assistant", "1"), ("user", "two"), ("assistant", "2"), ("user", "three")]
    assert first[0] == before
    assert first[1] == [*before, ("assistant", "I start a refund."), ("user", "four")]


# Optimization replays the original scenarios even if the contributing user playbooks are archived or replaced.


async def test_windows_are_replayed_when_their_user_playbooks_are_gone(harness: Harness) -> None:
    target = await harness.add_playbook()
    where = LearningFilter(Kind.USER_PLAYBOOK, statuses=None)
    await harness.store.write(lambda tx: tx.learnings.remove(where))
    job = await harness.run(target)
    assert job.successor_target_id is not None
    assert {messages[0].content for messages, _ in harness.scripted.asked} == {
        parcels.conversation(number)[0]["content"] for number in range(3)
    }


# Agent playbook optimization only targets current PENDING agent playbooks. APPROVED ones are never modified.


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"review": PlaybookStatus.APPROVED}, "approved"),
        ({"review": PlaybookStatus.REJECTED}, "rejected"),
        ({"status": Status.ARCHIVED}, "archived"),
        ({"status": Status.SUPERSEDED}, "superseded"),
    ],
)
async def test_only_current_pending_agent_playbooks_are_targeted(
    harness: Harness, changes: dict[str, Any], why: str
) -> None:
    target = await harness.add_playbook(**changes)
    assert await harness.scheduler.start_due() == []
    job = await harness.run(target)
    assert (job.status, harness.scripted.asked) == ("skipped", [])
    assert why in job.decision_reason
    assert await harness.get(target.id) == target


async def test_a_playbook_that_is_approved_while_the_search_runs_is_not_replaced(harness: Harness) -> None:
    target = await harness.add_playbook()
    begun = await harness.request_run(target)

    def approve(tx: Tx) -> None:
        row = tx.learnings.many([target.id])[target.id]
        tx.learnings.replace(Learning(**{**row.__dict__, "review": PlaybookStatus.APPROVED}))

    await harness.store.write(approve)
    assert begun.job_id is not None
    job = await harness.wait_until_ended(begun.job_id)
    assert job.successor_target_id is None
    assert (await harness.get(target.id)).review is PlaybookStatus.APPROVED
    assert (await harness.get(target.id)).status is Status.CURRENT


# A winning candidate replaces only the pending row and the successor remains PENDING.


async def test_the_winner_replaces_only_the_pending_row_and_stays_pending(harness: Harness) -> None:
    other = await harness.add_playbook(0, content="Another one.")
    target = await harness.add_playbook()
    job = await harness.run(target)
    before, after = await harness.get(target.id), await harness.get(job.successor_target_id)
    assert (before.status, before.details["superseded_by"]) == (Status.SUPERSEDED, str(after.id))
    assert (after.status, after.review, after.content) == (Status.CURRENT, PlaybookStatus.PENDING, job.winner_content)
    assert (after.trigger, after.details["source_windows"]) == (target.trigger, target.details["source_windows"])
    assert f'"optimized_from_agent_playbook_id": {target.id}' in after.details["playbook_metadata"]
    assert await harness.get(other.id) == other


async def test_without_auto_update_nothing_is_searched(harness: Harness) -> None:
    await harness.configure(auto_update_pending_agent_playbooks=False)
    job = await harness.run(await harness.add_playbook())
    assert (job.status, harness.scripted.asked) == ("skipped", [])
    assert "adoption path" in job.decision_reason


# User playbook optimization is separately gated.


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({}, "optimize_user_playbooks"),
        ({"optimize_user_playbooks": True}, "adoption path"),
        ({"auto_update_user_playbooks": True}, "optimize_user_playbooks"),
    ],
)
async def test_user_playbooks_are_skipped_unless_both_switches_are_on(
    harness: Harness, settings: dict[str, bool], why: str
) -> None:
    await harness.configure(min_commit_windows=1, **settings)
    window = await harness.add_user_playbook(0)
    job = await harness.run(await harness.get(window["user_playbook_id"]))
    assert (job.status, harness.scripted.asked) == ("skipped", [])
    assert why in job.decision_reason
    assert await harness.scheduler.start_due() == []


async def test_a_user_playbook_is_optimised_and_its_successor_is_current(harness: Harness) -> None:
    await harness.configure(min_commit_windows=1, optimize_user_playbooks=True, auto_update_user_playbooks=True)
    window = await harness.add_user_playbook(0, user="ann")
    target = await harness.get(window["user_playbook_id"])
    harness.say = lambda messages, guidance: parcels.answer(guidance.content if "photo" in guidance.content else "")
    job = await harness.run(target)
    after = await harness.get(job.successor_target_id)
    assert (after.kind, after.status, after.user_id) == (Kind.USER_PLAYBOOK, Status.CURRENT, "ann")
    assert (await harness.get(target.id)).status is Status.SUPERSEDED


# Configure exactly one of webhook_url or assistant_script_path.


def test_two_backends_are_refused() -> None:
    with pytest.raises(ValidationError, match="not both"):
        PlaybookOptimizerConfig(webhook_url="https://a.example", assistant_script_path="/bin/true")


async def test_without_a_backend_it_is_skipped(harness: Harness) -> None:
    await harness.configure(webhook_url=None)
    job = await harness.run(await harness.add_playbook())
    assert (job.status, job.decision_reason) == ("skipped", "no assistant")


# Use playbook_optimizer_config, with these names and defaults.


def test_the_configuration_of_the_page_is_taken_and_holds_the_defaults() -> None:
    given = Config(playbook_optimizer_config=SEED_CONFIG).playbook_optimizer_config.model_dump(mode="json")
    assert {name: given[name] for name in SEED_CONFIG} == SEED_CONFIG
    defaults = PlaybookOptimizerConfig().model_dump(mode="json")
    assert {**{name: defaults[name] for name in SEED_CONFIG}, "webhook_url": SEED_CONFIG["webhook_url"]} == SEED_CONFIG


# The optimizer also exposes budget and threshold controls.


@pytest.mark.parametrize(
    ("settings", "adopted"),
    [
        ({"min_commit_score": 1.0}, True),
        ({"min_commit_likert": 5}, True),
        ({"min_commit_score": 1.0, "max_metric_calls": 6}, False),
        ({"min_commit_likert": 5, "max_metric_calls": 6}, False),
        ({"early_stop_score": 0.7, "min_commit_score": 0.8}, False),
        ({"early_stop_score": 0.7}, True),
    ],
)
async def test_thresholds_and_budget_decide_what_is_adopted(
    harness: Harness, settings: dict[str, float], adopted: bool
) -> None:
    await harness.configure(**settings)
    job = await harness.run(await harness.add_playbook())
    assert job.status == "completed"
    assert (job.successor_target_id is not None) is adopted, job.decision_reason


async def test_early_stop_score_ends_the_search(harness: Harness) -> None:
    await harness.configure(early_stop_score=0.7)
    job = await harness.run(await harness.add_playbook())
    assert (job.reflection_calls, job.best_score) == (1, 0.75)


# Human approval is still required before the optimized agent playbook can affect production retrieval.


async def test_the_successor_waits_for_a_person_like_any_other(harness: Harness) -> None:
    job = await harness.run(await harness.add_playbook())
    served = LearningFilter(Kind.AGENT_PLAYBOOK, reviews=(PlaybookStatus.APPROVED,))
    assert (await harness.store.read(lambda tx: tx.learnings.page(served, Page(10)))).rows == []
    assert job.successor_target_id is not None
