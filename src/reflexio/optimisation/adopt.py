"""Which wording wins, and how it replaces the incumbent.

Only a current playbook is replaced, and the successor of a pending agent playbook stays pending.
"""

import dataclasses
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import fmean

from reflexio.aggregation.review import retire
from reflexio.models.config import PlaybookOptimizerConfig
from reflexio.models.learning import Kind, Learning, PlaybookStatus, Status
from reflexio.models.optimisation import Trial
from reflexio.ports.storage import LearningFilter, LineageEvent, Tx

ACTOR = "optimiser"
ORIGIN = {
    Kind.AGENT_PLAYBOOK: "optimized_from_agent_playbook_id",
    Kind.USER_PLAYBOOK: "optimized_from_user_playbook_id",
}
CHANGED = "The playbook was changed, reviewed or removed during the search; nothing was replaced."


@dataclass(frozen=True)
class AdoptionDecision:
    """The best wording on the held-out windows, whether it is adopted, and why."""

    reason: str
    best: str = ""
    score: float | None = None
    adopted: bool = False


def decide(trials: Sequence[Trial], held_out: frozenset[str], config: PlaybookOptimizerConfig) -> AdoptionDecision:
    """Counts only trials in held-out windows, and only wordings that were tried in all of them."""
    by_wording: dict[str, list[Trial]] = {}
    for trial in trials:
        if trial.scene.key in held_out:
            by_wording.setdefault(trial.content, []).append(trial)
    results = {content: _measure(tried, config) for content, tried in by_wording.items() if len(tried) == len(held_out)}
    if not results:
        return AdoptionDecision("No wording was better in the training windows; the incumbent stays.")
    # Of equal results max takes the first, which needed fewer calls.
    best = max(results, key=lambda content: results[content][:2])
    passes, score, wins = results[best]
    reason = (
        f"The best wording scored {score:.2f} on {len(held_out)} held-out window(s) ({config.min_commit_score:g} "
        f"needed) and won {wins} of them clearly ({config.min_commit_windows} needed)"
    )
    if passes:
        return AdoptionDecision(f"{reason}.", best, score, adopted=True)
    errors = [trial.error for trial in by_wording[best] if trial.error]
    failure = f" In one of them the trial failed: {errors[0]}" if errors else ""
    return AdoptionDecision(f"{reason}; the incumbent stays.{failure}", best, score)


def _measure(trials: Sequence[Trial], config: PlaybookOptimizerConfig) -> tuple[bool, float, int]:
    """Whether a wording may be adopted, its mean score, and the number of windows that it won clearly."""
    score = fmean(trial.judgement.score for trial in trials)
    wins = sum(
        trial.judgement.verdict == "candidate"
        and trial.judgement.score >= config.min_commit_score
        and trial.judgement.likert >= config.min_commit_likert
        for trial in trials
    )
    return score >= config.min_commit_score and wins >= config.min_commit_windows, score, wins


def is_open(target: Learning) -> bool:
    """Whether a playbook may be optimised: it is current, and no person has reviewed it."""
    undecided = target.kind is not Kind.AGENT_PLAYBOOK or target.review is PlaybookStatus.PENDING
    return target.status is Status.CURRENT and undecided


def is_optimised(target: Learning) -> bool:
    """Whether an optimisation wrote this playbook."""
    return ORIGIN[target.kind] in target.details


def adopt(tx: Tx, target: Learning, content: str, job_id: int, now: int) -> int | None:
    """Replaces the incumbent and returns the successor's id. None when the playbook changed since the search began."""
    incumbent = tx.learnings.get(LearningFilter(target.kind, ids=(target.id,), statuses=None))
    if incumbent is None or not is_open(incumbent):
        return None
    if (incumbent.content, incumbent.trigger) != (target.content, target.trigger):
        return None
    origin = ORIGIN[incumbent.kind]
    details = {**incumbent.details, origin: incumbent.id}
    if incumbent.kind is Kind.AGENT_PLAYBOOK:
        details["playbook_metadata"] = _add_origin(details.get("playbook_metadata", ""), origin, incumbent.id)
    successor = dataclasses.replace(incumbent, id=0, content=content, details=details, created_at=now, modified_at=now)
    (successor_id,) = tx.learnings.add([successor])
    reason = f"optimisation job {job_id}"
    event = LineageEvent(successor_id, incumbent.kind, "optimised", now, ACTOR, f"{reason}, from {incumbent.id}")
    tx.learnings.note(event)
    retire(tx, incumbent, successor_id, ACTOR, f"{reason}, by {successor_id}", now)
    return successor_id


def _add_origin(metadata: str, origin: str, incumbent_id: int) -> str:
    """Adds the incumbent's id to metadata that may be a JSON object or free text."""
    with suppress(ValueError):
        known = json.loads(metadata or "{}")
        if isinstance(known, dict):
            return json.dumps({**known, origin: incumbent_id}, ensure_ascii=False)
    return f"{metadata}\n{origin}={incumbent_id}"
