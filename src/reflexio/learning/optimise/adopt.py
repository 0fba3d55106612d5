"""Which wording wins, and how it takes the incumbent's place: only of a current row, and what is pending stays so."""

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from reflexio.learning.succession import retire
from reflexio.models.config import PlaybookOptimizerConfig
from reflexio.models.learning import Kind, Learning
from reflexio.models.rollout import Trial
from reflexio.models.status import PlaybookStatus, Status
from reflexio.ports.storage import LearningFilter, LineageEvent, Tx

ACTOR = "optimiser"
ORIGIN = {
    Kind.AGENT_PLAYBOOK: "optimized_from_agent_playbook_id",
    Kind.USER_PLAYBOOK: "optimized_from_user_playbook_id",
}
CHANGED = "The playbook was changed, decided about or removed while the search ran; nothing was replaced."


@dataclass(frozen=True)
class Outcome:
    """The best wording on the held-out windows, whether it is good enough, and why."""

    reason: str
    best: str = ""
    score: float | None = None
    adopted: bool = False


def decide(trials: Sequence[Trial], held_out: frozenset[str], config: PlaybookOptimizerConfig) -> Outcome:
    """Only trials of held-out windows count, and only wordings that were tried in all of them."""
    by_wording: dict[str, list[Trial]] = {}
    for trial in trials:
        if trial.scene.key in held_out:
            by_wording.setdefault(trial.content, []).append(trial)
    whole = {content: made for content, made in by_wording.items() if len(made) == len(held_out)}
    if not whole:
        return Outcome("No wording was better in the windows to search with; the incumbent stays.")
    # The first of equals: it was found with less.
    content, made = max(whole.items(), key=lambda each: (_passes(each[1], config), _score(each[1])))
    won, score = _won(made, config), _score(made)
    told = (
        f"The best wording scored {score:.2f} on {len(made)} held-out window(s) ({config.min_commit_score:g} needed) "
        f"and won {won} of them clearly ({config.min_commit_windows} needed)"
    )
    if _passes(made, config):
        return Outcome(f"{told}.", content, score, adopted=True)
    failed = [trial.error for trial in made if trial.error]
    because = f" In one of them the trial failed: {failed[0]}" if failed else ""
    return Outcome(f"{told}; the incumbent stays.{because}", content, score)


def _score(trials: Sequence[Trial]) -> float:
    return fmean(trial.judgement.score for trial in trials)


def _won(trials: Sequence[Trial], config: PlaybookOptimizerConfig) -> int:
    return sum(
        each.judgement.verdict == "candidate"
        and each.judgement.score >= config.min_commit_score
        and each.judgement.likert >= config.min_commit_likert
        for each in trials
    )


def _passes(trials: Sequence[Trial], config: PlaybookOptimizerConfig) -> bool:
    return _score(trials) >= config.min_commit_score and _won(trials, config) >= config.min_commit_windows


def is_open(target: Learning) -> bool:
    """Whether it may be optimised: a current row, and no person has decided about it."""
    undecided = target.kind is not Kind.AGENT_PLAYBOOK or target.review is PlaybookStatus.PENDING
    return target.status is Status.CURRENT and undecided


def is_optimised(target: Learning) -> bool:
    return ORIGIN[target.kind] in target.details


def adopt(tx: Tx, target: Learning, content: str, job_id: int, now: int) -> Learning | None:
    """The successor, in the place of the incumbent. Nothing when that is no longer what the search began with."""
    here = tx.learnings.get(LearningFilter(target.kind, ids=(target.id,), statuses=None))
    if here is None or not is_open(here) or (here.content, here.trigger) != (target.content, target.trigger):
        return None
    origin = ORIGIN[here.kind]
    details = {**here.details, origin: here.id}
    if here.kind is Kind.AGENT_PLAYBOOK:
        details["playbook_metadata"] = _marked(here.details.get("playbook_metadata", ""), origin, here.id)
    made = dataclasses.replace(here, id=0, content=content, details=details, created_at=now, modified_at=now)
    (number,) = tx.learnings.add([made])
    why = f"optimisation job {job_id}"
    tx.learnings.note(LineageEvent(number, here.kind, "optimised", now, ACTOR, f"{why}, from {here.id}"))
    retire(tx, here, number, ACTOR, f"{why}, by {number}", now)
    return dataclasses.replace(made, id=number)


def _marked(metadata: str, name: str, number: int) -> str:
    """The metadata of the incumbent with a note of where the wording comes from."""
    try:
        known = json.loads(metadata or "{}")
    except ValueError:
        known = None
    if isinstance(known, dict):
        return json.dumps({**known, name: number}, ensure_ascii=False)
    return f"{metadata}\n{name}={number}"
