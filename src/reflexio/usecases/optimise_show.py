"""Optimisation jobs to look at. What users said in a rollout is read from their turns, and gone when those are."""

from reflexio.learning.optimise.windows import message
from reflexio.models.interaction import Interaction
from reflexio.models.optimisation import (
    GetPlaybookOptimizationResponse,
    GetPlaybookOptimizationsResponse,
    OptimizationFeedback,
    PlaybookOptimizationCandidate,
    PlaybookOptimizationEvaluation,
    PlaybookOptimizationJob,
    RolloutMessage,
)
from reflexio.models.paging import page
from reflexio.models.rollout import Side
from reflexio.ports.storage import Evaluated, Store, Tx, Wording
from reflexio.usecases.optimise import get


async def jobs(store: Store, limit: int, cursor: str | None) -> GetPlaybookOptimizationsResponse:
    found = await store.read(lambda tx: tx.optimisations.page(page(limit, cursor)))
    return GetPlaybookOptimizationsResponse(
        jobs=found.rows, msg=f"Found {len(found.rows)} job(s)", next_cursor=found.cursor
    )


async def job(store: Store, job_id: int, *, details: bool) -> GetPlaybookOptimizationResponse:
    """One job; with `details` all wordings, evaluations and events too. Raises NotFound."""

    def look(tx: Tx) -> GetPlaybookOptimizationResponse:
        found = get(tx, job_id)
        if not details:
            return GetPlaybookOptimizationResponse(job=found)
        wordings, evaluations = tx.optimisations.wordings(job_id), tx.optimisations.evaluations(job_id)
        turns = tx.interactions.many(sorted({turn for each in evaluations for turn, _ in each.document["script"]}))
        numbers = {each.place: each.id for each in wordings}
        return GetPlaybookOptimizationResponse(
            job=found,
            candidates=[_candidate(found, each, numbers) for each in wordings],
            evaluations=[_evaluation(found, each, numbers, turns) for each in evaluations],
            events=tx.optimisations.events(job_id),
        )

    return await store.read(look)


def _candidate(of: PlaybookOptimizationJob, wording: Wording, numbers: dict[int, int]) -> PlaybookOptimizationCandidate:
    return PlaybookOptimizationCandidate(
        candidate_id=wording.id,
        job_id=of.job_id,
        candidate_index=wording.place,
        content=wording.content,
        parent_candidate_ids=[numbers[each] for each in wording.parents if each in numbers],
        aggregate_score=wording.score,
        is_winner=wording.is_winner,
        created_at=wording.created_at,
    )


def _evaluation(
    of: PlaybookOptimizationJob, made: Evaluated, numbers: dict[int, int], turns: dict[int, Interaction]
) -> PlaybookOptimizationEvaluation:
    told = made.document
    return PlaybookOptimizationEvaluation(
        evaluation_id=made.id,
        job_id=of.job_id,
        candidate_id=numbers.get(made.place, 0),
        target_kind=of.target_kind,
        target_id=of.target_id,
        user_id=made.user_id,
        scenario_user_playbook_id=told["user_playbook_id"],
        source_interaction_ids=told["cited"],
        is_validation=told["is_validation"],
        score=told["score"],
        verdict=told["verdict"],
        likert=told["likert"],
        rationale=told["rationale"],
        feedback=OptimizationFeedback(**told["feedback"]),
        error=told["error"] or None,
        incumbent_rollout=_rollout(told["script"], told["incumbent"], turns),
        candidate_rollout=_rollout(told["script"], told["candidate"], turns),
        created_at=made.created_at,
    )


def _rollout(script: list[tuple[int, Side]], answers: list[str], turns: dict[int, Interaction]) -> list[RolloutMessage]:
    """The script with the answers in their places. A turn that is gone took its answer along."""
    left = iter(answers)
    played: list[RolloutMessage] = []
    for turn, role in script:
        answer = next(left, None) if role == "user" else None
        if turn in turns:
            played.append(RolloutMessage(role=role, content=message(turns[turn]).content))
            played += [] if answer is None else [RolloutMessage(role="assistant", content=answer)]
    return played
