"""What is written of a search: its wordings, how each did, how far it is."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from statistics import fmean

from reflexio.learning.optimise.gepa import Event, Notebook
from reflexio.learning.optimise.gepa import Wording as Found
from reflexio.learning.optimise.trial import Trials
from reflexio.models.optimisation import PlaybookOptimizationEvent
from reflexio.models.rollout import Trial
from reflexio.ports.storage import Evaluated, Wording
from reflexio.ports.work import Json


def wordings(found: Sequence[Found], now: int) -> list[Wording]:
    return [Wording(each.index, each.content, each.parents, created_at=now) for each in found]


def evaluations(made: Sequence[Trial], places: dict[str, Found], held_out: frozenset[str], now: int) -> list[Evaluated]:
    return [_evaluated(each, places[each.content].index, each.scene.key in held_out, now) for each in made]


def _evaluated(trial: Trial, place: int, is_validation: bool, now: int) -> Evaluated:
    scene, judgement = trial.scene, trial.judgement
    document = {
        "user_playbook_id": scene.user_playbook_id,
        "cited": list(scene.cited),
        "script": [[turn, line.role] for turn, line in zip(scene.turns, scene.script, strict=True)],
        "is_validation": is_validation,
        "score": judgement.score,
        "verdict": judgement.verdict,
        "likert": judgement.likert,
        "rationale": judgement.rationale,
        "feedback": asdict(judgement.feedback),
        "error": trial.error,
        "incumbent": list(trial.incumbent.answers),
        "candidate": list(trial.candidate.answers),
    }
    return Evaluated(place, scene.key, scene.user_id, document, created_at=now)


def events(told: Sequence[Event], now: int) -> list[PlaybookOptimizationEvent]:
    return [
        PlaybookOptimizationEvent(event_id=each.number, event_type=each.type, payload=each.payload, created_at=now)
        for each in told
    ]


def progress(trials: Trials, metric_calls: int) -> Json:
    tried = [each for each in trials.made.values() if each.content != trials.incumbent.content]
    return {
        "metric_calls": metric_calls,
        "evaluations": len(tried),
        "aborted_evaluations": sum(bool(each.error) for each in tried),
        "assistant_calls": trials.rollouts.stage.calls,
        "judge_calls": trials.models.judged,
        "reflection_calls": trials.models.reflected,
    }


def scored(
    notebook: Notebook, tried: Sequence[Trial], held_out: frozenset[str], winner: str, now: int
) -> Iterator[Wording]:
    """Every wording that was tried in held-out windows, with its mean over those."""
    for each in notebook.wordings.values():
        scores = [
            trial.judgement.score for trial in tried if trial.content == each.content and trial.scene.key in held_out
        ]
        if scores:
            yield Wording(each.index, each.content, each.parents, fmean(scores), each.content == winner, now)
