"""Optimiser runs: the list, one run with its candidates and paired rollouts, and how to start or cancel one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from statistics import fmean

from markupsafe import Markup
from pydantic import TypeAdapter, ValidationError
from starlette.responses import Response

from reflexio.dashboard.forms import parse
from reflexio.dashboard.plots import Point, scatter_chart
from reflexio.dashboard.rendering import query
from reflexio.dashboard.routing import Pages
from reflexio.dashboard.visit import Visit
from reflexio.errors import InvalidRequest
from reflexio.models.access import KeyScope
from reflexio.models.learning import Kind
from reflexio.models.optimisation import (
    CallCounts,
    GetPlaybookOptimizationResponse,
    PlaybookOptimizationCandidate,
    PlaybookOptimizationEvaluation,
    RolloutMessage,
    RunPlaybookOptimizationRequest,
)
from reflexio.models.paging import Cursor
from reflexio.ports.storage import LearningFilter
from reflexio.retrieval.filters import get_one

pages = Pages()

LISTED = 25
KINDS = {"agent_playbook": Kind.AGENT_PLAYBOOK, "user_playbook": Kind.USER_PLAYBOOK}
CURSOR = TypeAdapter(Cursor)
CALLS = {
    "evaluations": "Evaluations",
    "assistant_calls": "Calls of your assistant",
    "judge_calls": "Calls of the judge",
    "reflection_calls": "New wordings asked for",
}


@dataclass(frozen=True)
class TriedCandidate:
    """A candidate with its evaluations. `score` is over held-out windows, else over all in which it was tried."""

    candidate: PlaybookOptimizationCandidate
    evaluations: tuple[PlaybookOptimizationEvaluation, ...]

    @property
    def number(self) -> int:
        return self.candidate.candidate_index

    @property
    def is_incumbent(self) -> bool:
        return self.candidate.candidate_index == 0

    @property
    def is_held_out(self) -> bool:
        return self.candidate.aggregate_score is not None

    @property
    def score(self) -> float | None:
        if self.candidate.aggregate_score is not None:
            return self.candidate.aggregate_score
        scores = [evaluation.score for evaluation in self.evaluations if evaluation.verdict != "aborted"]
        return fmean(scores) if scores else None

    @property
    def name(self) -> str:
        return "Incumbent" if self.is_incumbent else f"Candidate {self.number}"


@dataclass(frozen=True)
class PairedTurn:
    """One message of a scenario with what follows it in each rollout."""

    message: RolloutMessage | None
    incumbent: tuple[RolloutMessage, ...]
    candidate: tuple[RolloutMessage, ...]

    @property
    def is_same(self) -> bool:
        return self.incumbent == self.candidate


@pages.get("/optimisations", KeyScope.READ)
async def runs(visit: Visit) -> Response:
    """The runs, newest first."""
    cursor = visit.asked("cursor")
    if cursor:
        try:
            CURSOR.validate_python(cursor)
        except ValidationError:
            raise InvalidRequest("This is no place in the list. Start again without it.") from None
    listing = await visit.parts.optimisation.list_jobs(visit.store, LISTED, cursor or None)
    return visit.page("optimisations.html", jobs=listing.jobs, next_cursor=listing.next_cursor)


@pages.get("/optimisations/new", KeyScope.READ)
async def plan(visit: Visit) -> Response:
    """What a run for one playbook would cost at most, or why it cannot start."""
    request = _asked_for(visit, is_trial=True)
    estimate = await visit.parts.optimisation.run(visit.store, request)
    where = LearningFilter(KINDS[request.target_kind], ids=(request.target_id,))
    playbook = await visit.store.read(lambda tx: get_one(tx, where))
    return visit.page(
        "optimisation_plan.html",
        playbook=playbook,
        target_kind=request.target_kind,
        estimate=estimate.estimate,
        obstacle="" if estimate.success else estimate.msg or "",
        calls=CALLS,
    )


@pages.post("/optimisations/new", KeyScope.REVIEW)
async def start(visit: Visit) -> Response:
    """Starts a run, or says in it why it was skipped."""
    started = await visit.parts.optimisation.run(visit.store, _asked_for(visit, is_trial=False))
    return visit.go(f"/optimisations/{started.job_id}", "" if started.success else started.msg or "")


@pages.get("/optimisations/{job}", KeyScope.READ)
async def run(visit: Visit) -> Response:
    """One run. The candidate whose rollouts are shown is the best one, unless another is asked for."""
    job_id = visit.number("job", "optimisation job")
    found = await visit.parts.optimisation.show_job(visit.store, job_id, details=True)
    tried = join_evaluations(found)
    shown = choose_candidate(tried, visit.asked("candidate"))
    where = LearningFilter(KINDS[found.job.target_kind], ids=(found.job.target_id,), statuses=None)
    target = await visit.store.read(lambda tx: tx.learnings.get(where))
    response = visit.page(
        "optimisation.html",
        job=found.job,
        tried=tried,
        shown=shown,
        chart=score_chart(job_id, tried),
        target=target,
        cost=cost(found.job, found.job.estimate),
        pair=pair_rollouts,
        events=found.events[-200:],
    )
    if visit.is_partial and found.job.has_ended:
        # The page was following the run: now it is opened again, with the rollouts.
        response.headers["HX-Refresh"] = "true"
    return response


@pages.post("/optimisations/{job}/cancel", KeyScope.REVIEW)
async def cancel(visit: Visit) -> Response:
    job_id = visit.number("job", "optimisation job")
    job, is_stopped = await visit.parts.optimisation.cancel(visit.store, job_id)
    return visit.go(f"/optimisations/{job_id}", job.decision_reason if is_stopped else "The run had ended before.")


def _asked_for(visit: Visit, *, is_trial: bool) -> RunPlaybookOptimizationRequest:
    numbers = {f"{kind}_id": visit.asked(kind) for kind in KINDS if visit.asked(kind)}
    return parse(RunPlaybookOptimizationRequest, {**numbers, "dry_run": is_trial})


def join_evaluations(found: GetPlaybookOptimizationResponse) -> list[TriedCandidate]:
    """The candidates in the order in which they came, each with its evaluations, held-out windows first."""
    ordered = sorted(found.evaluations, key=lambda evaluation: (not evaluation.is_validation, evaluation.evaluation_id))
    return [
        TriedCandidate(candidate, tuple(each for each in ordered if each.candidate_id == candidate.candidate_id))
        for candidate in sorted(found.candidates, key=lambda candidate: candidate.candidate_index)
    ]


def choose_candidate(tried: Sequence[TriedCandidate], asked: str) -> TriedCandidate | None:
    """The candidate that was asked for by its number, else the winner, else the best one that was tried."""
    others = [candidate for candidate in tried if not candidate.is_incumbent]
    by_number = {str(candidate.number): candidate for candidate in others}
    if asked in by_number:
        return by_number[asked]
    winner = next((candidate for candidate in others if candidate.candidate.is_winner), None)
    scored = sorted((each for each in others if each.evaluations), key=_rank, reverse=True)
    return winner or next(iter(scored), None)


def _rank(candidate: TriedCandidate) -> tuple[bool, float]:
    return candidate.is_held_out, candidate.score or 0.0


def score_chart(job_id: int, tried: Iterable[TriedCandidate]) -> Markup:
    """Candidates in the order in which they came, by their score. Above 0.5 the judge prefers the candidate."""
    points = []
    for each in tried:
        if each.score is not None:
            place = "held-out windows" if each.is_held_out else "training windows only"
            group = "incumbent" if each.is_incumbent else place
            address = "" if each.is_incumbent else f"/optimisations/{job_id}" + query({"candidate": each.number})
            points.append(
                Point(each.name, each.number, each.score, group, is_marked=each.candidate.is_winner, href=address)
            )
    return scatter_chart("Scores of the candidates", points, x_label="candidate", y_label="score")


def pair_rollouts(incumbent: Sequence[RolloutMessage], candidate: Sequence[RolloutMessage]) -> list[PairedTurn]:
    """Both rollouts, message of the user by message. A rollout that stopped early has no more answers."""
    paired = []
    for one, two in zip_longest(_by_user_message(incumbent), _by_user_message(candidate)):
        message = (one or two or (None, ()))[0]
        paired.append(PairedTurn(message, one[1] if one else (), two[1] if two else ()))
    return paired


def _by_user_message(
    messages: Sequence[RolloutMessage],
) -> list[tuple[RolloutMessage | None, tuple[RolloutMessage, ...]]]:
    found: list[tuple[RolloutMessage | None, tuple[RolloutMessage, ...]]] = []
    for message in messages:
        if message.role == "user":
            found.append((message, ()))
        elif found:
            found[-1] = (found[-1][0], (*found[-1][1], message))
        else:
            found.append((None, (message,)))
    return found


def cost(spent: CallCounts, most: CallCounts) -> list[tuple[str, int, int]]:
    """What was called, how often, and how often at most as estimated before."""
    return [(words, getattr(spent, name), getattr(most, name)) for name, words in CALLS.items()]
