"""What is stored of an optimisation job and how it is shown.

What users wrote in a scenario is not stored again: it is read from their turns and disappears with them.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean
from typing import Any

from reflexio.errors import NotFound
from reflexio.models.interaction import Interaction
from reflexio.models.optimisation import (
    GetPlaybookOptimizationResponse,
    PlaybookOptimizationCandidate,
    PlaybookOptimizationEvaluation,
    PlaybookOptimizationEvent,
    PlaybookOptimizationJob,
    RolloutMessage,
    Side,
    Trial,
)
from reflexio.optimisation.replay_windows import chat_message
from reflexio.optimisation.trial import OptimisationBudget, TrialRunner
from reflexio.ports.clock import Clock
from reflexio.ports.storage import Store, StoredCandidate, StoredEvaluation, Tx
from reflexio.ports.work import Json

OMITTED = {
    "state", "final_state", "trainset_loader", "inputs", "outputs", "trajectories", "outputs_by_val_id",
    "dataset", "reflective_dataset", "prompts", "raw_lm_outputs", "objective_scores", "run_dir",
}  # fmt: skip
"""Fields of GEPA's events that are not stored: GEPA's own objects, and texts that are stored elsewhere."""
SHOWN_AS_STORED = ("is_validation", "score", "verdict", "likert", "rationale", "feedback")


def get_job(tx: Tx, job_id: int) -> PlaybookOptimizationJob:
    """Raises NotFound when there is no such job."""
    job = tx.optimisations.get(job_id)
    if job is None:
        raise NotFound(what="optimisation job", id=job_id)
    return job


@dataclass
class SearchLog:
    """Stores what a search produces while it runs. A search that is replayed after a crash stores nothing twice."""

    store: Store
    job_id: int
    clock: Clock
    budget: OptimisationBudget
    runner: TrialRunner
    held_out: frozenset[str]
    candidates: dict[str, StoredCandidate] = field(default_factory=dict)
    metric_calls: int = 0
    _events: list[PlaybookOptimizationEvent] = field(default_factory=list)
    _event_count: int = 0
    _writing: "asyncio.Task[None] | None" = None

    def candidate(self, content: str, parents: Sequence[str] = ()) -> StoredCandidate:
        """The candidate with this wording, numbered in order of appearance; 0 is the incumbent."""
        if content not in self.candidates:
            places = tuple(self.candidates[parent].place for parent in parents if parent in self.candidates)
            self.candidates[content] = StoredCandidate(len(self.candidates), content, places)
        return self.candidates[content]

    def add_event(self, kind: str, event: Mapping[str, Any]) -> None:
        self._event_count += 1
        payload = {name: _to_json(value) for name, value in event.items() if name not in OMITTED}
        self._events.append(PlaybookOptimizationEvent(event_id=self._event_count, event_type=kind, payload=payload))
        self.metric_calls = int(event.get("metric_calls_used", self.metric_calls))

    async def flush(self, new_trials: Sequence[Trial] = ()) -> None:
        """Begins to write what is new, in one transaction. It can be recomputed, so the search does not wait."""
        await self.wait_until_written()
        now = self.clock.now()
        record_spend, progress = self.budget.take_pending(now), self.progress()
        events = [event.model_copy(update={"created_at": now}) for event in self._events]
        self._events = []
        contents = dict.fromkeys(trial.content for trial in new_trials)
        candidates = [replace(self.candidates[content], created_at=now) for content in contents]
        evaluations = [self._evaluation(trial, now) for trial in new_trials]

        def write(tx: Tx) -> None:
            tx.optimisations.keep_wordings(self.job_id, candidates)
            tx.optimisations.keep_evaluations(self.job_id, evaluations)
            tx.optimisations.keep_events(self.job_id, events)
            job = record_spend(tx, get_job(tx, self.job_id))
            # A job that was cancelled in the meantime stays cancelled.
            tx.optimisations.put(job if job.has_ended else job.changed(updated_at=now, **progress))

        self._writing = asyncio.ensure_future(self.store.write(write))

    async def wait_until_written(self) -> None:
        """Waits until everything is written."""
        if self._writing is not None:
            await self._writing

    def progress(self) -> Json:
        return {"metric_calls": self.metric_calls, **self.runner.counts()}

    def scored_candidates(self, winner: str, now: int) -> Iterator[StoredCandidate]:
        """The candidates that were tried in held-out windows, with their mean score."""
        scores: dict[str, list[float]] = {}
        for trial in self.runner.candidate_trials:
            if trial.scene.key in self.held_out:
                scores.setdefault(trial.content, []).append(trial.judgement.score)
        for content, candidate in self.candidates.items():
            if content in scores:
                yield replace(candidate, score=fmean(scores[content]), is_winner=content == winner, created_at=now)

    def _evaluation(self, trial: Trial, now: int) -> StoredEvaluation:
        scenario = trial.scene
        document = {
            "user_playbook_id": scenario.user_playbook_id,
            "cited": list(scenario.cited),
            "script": [[turn, line.role] for turn, line in zip(scenario.turns, scenario.script, strict=True)],
            "is_validation": scenario.key in self.held_out,
            **asdict(trial.judgement),
            "error": trial.error,
            "incumbent": list(trial.incumbent.answers),
            "candidate": list(trial.candidate.answers),
        }
        place = self.candidates[trial.content].place
        return StoredEvaluation(place, scenario.key, scenario.user_id, document, created_at=now)


def _to_json(value: Any) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case dict():
            return {str(name): _to_json(item) for name, item in value.items()}
        case list() | tuple() | set():
            return [_to_json(item) for item in value]
        case _:
            return str(value)


def describe_job(tx: Tx, job_id: int, *, details: bool) -> GetPlaybookOptimizationResponse:
    """One job; with `details` also its candidates, evaluations and events. Raises NotFound."""
    job = get_job(tx, job_id)
    if not details:
        return GetPlaybookOptimizationResponse(job=job)
    candidates, evaluations = tx.optimisations.wordings(job_id), tx.optimisations.evaluations(job_id)
    turns = tx.interactions.many(sorted({turn for item in evaluations for turn, _ in item.document["script"]}))
    candidate_ids = {candidate.place: candidate.id for candidate in candidates}
    return GetPlaybookOptimizationResponse(
        job=job,
        candidates=[
            PlaybookOptimizationCandidate(
                candidate_id=candidate.id,
                job_id=job_id,
                candidate_index=candidate.place,
                content=candidate.content,
                parent_candidate_ids=[candidate_ids[place] for place in candidate.parents if place in candidate_ids],
                aggregate_score=candidate.score,
                is_winner=candidate.is_winner,
                created_at=candidate.created_at,
            )
            for candidate in candidates
        ],
        evaluations=[
            PlaybookOptimizationEvaluation(
                evaluation_id=evaluation.id,
                job_id=job_id,
                candidate_id=candidate_ids.get(evaluation.place, 0),
                target_kind=job.target_kind,
                target_id=job.target_id,
                user_id=evaluation.user_id,
                created_at=evaluation.created_at,
                **_describe_trial(evaluation.document, turns),
            )
            for evaluation in evaluations
        ],
        events=tx.optimisations.events(job_id),
    )


def _describe_trial(document: Json, turns: Mapping[int, Interaction]) -> Json:
    return {
        "scenario_user_playbook_id": document["user_playbook_id"],
        "source_interaction_ids": document["cited"],
        "error": document["error"] or None,
        "incumbent_rollout": _describe_rollout(document["script"], document["incumbent"], turns),
        "candidate_rollout": _describe_rollout(document["script"], document["candidate"], turns),
        **{name: document[name] for name in SHOWN_AS_STORED},
        "orders": document.get("orders", []),  # evaluations of earlier releases have none
    }


def _describe_rollout(
    script: Sequence[tuple[int, Side]], answers: Sequence[str], turns: Mapping[int, Interaction]
) -> list[RolloutMessage]:
    """The script with the answers in their places. The answer to a deleted turn is not shown."""
    remaining = iter(answers)
    messages: list[RolloutMessage] = []
    for turn, role in script:
        answer = next(remaining, None) if role == "user" else None
        if turn in turns:
            messages.append(RolloutMessage(role=role, content=chat_message(turns[turn]).content))
            messages += [] if answer is None else [RolloutMessage(role="assistant", content=answer)]
    return messages
