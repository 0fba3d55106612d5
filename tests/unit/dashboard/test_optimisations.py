"""A run of the optimiser as its page shows it: which candidate, which score, which answers stand beside each other."""

from reflexio.dashboard.pages.optimisations import choose_candidate, join_evaluations, pair_rollouts, score_chart
from reflexio.models.optimisation import (
    GetPlaybookOptimizationResponse,
    PlaybookOptimizationCandidate,
    PlaybookOptimizationEvaluation,
    PlaybookOptimizationJob,
    RolloutMessage,
    Side,
)

JOB = PlaybookOptimizationJob(job_id=7, target_kind="agent_playbook", target_id=3)


def message(role: Side, content: str) -> RolloutMessage:
    return RolloutMessage(role=role, content=content)


def candidate(number: int, *, score: float | None = None, is_winner: bool = False) -> PlaybookOptimizationCandidate:
    return PlaybookOptimizationCandidate(
        candidate_id=100 + number,
        candidate_index=number,
        content=f"wording {number}",
        aggregate_score=score,
        is_winner=is_winner,
    )


def evaluation(number: int, of: int, score: float, *, is_validation: bool = False) -> PlaybookOptimizationEvaluation:
    return PlaybookOptimizationEvaluation(
        evaluation_id=number, candidate_id=100 + of, score=score, is_validation=is_validation
    )


def found(
    candidates: list[PlaybookOptimizationCandidate], evaluations: list[PlaybookOptimizationEvaluation]
) -> GetPlaybookOptimizationResponse:
    return GetPlaybookOptimizationResponse(job=JOB, candidates=candidates, evaluations=evaluations)


def test_the_score_is_over_held_out_windows_if_there_are_some() -> None:
    tried = join_evaluations(
        found(
            [candidate(1), candidate(0), candidate(2, score=0.8)],
            [
                evaluation(1, 1, 0.4),
                evaluation(2, 1, 0.6),
                evaluation(3, 2, 0.1),
                evaluation(4, 2, 0.8, is_validation=True),
            ],
        )
    )
    assert [(each.name, each.score) for each in tried] == [
        ("Incumbent", None),
        ("Candidate 1", 0.5),
        ("Candidate 2", 0.8),
    ]
    assert [each.evaluation_id for each in tried[2].evaluations] == [4, 3]


def test_the_winner_is_shown_else_the_best_else_what_was_asked_for() -> None:
    evaluations = [evaluation(1, 1, 0.9), evaluation(2, 2, 0.7, is_validation=True)]
    tried = join_evaluations(found([candidate(0), candidate(1), candidate(2, score=0.7)], evaluations))
    best = choose_candidate(tried, "")
    assert best is not None
    assert best.number == 2
    won = join_evaluations(found([candidate(0), candidate(1, is_winner=True), candidate(2, score=0.7)], evaluations))
    winner, asked, unknown = (choose_candidate(won, text) for text in ("", "2", "99"))
    assert [each and each.number for each in (winner, asked, unknown)] == [1, 2, 1]
    assert choose_candidate(join_evaluations(found([candidate(0)], [])), "0") is None


def test_answers_stand_beside_each_other_under_the_same_message() -> None:
    one = [message("user", "hi"), message("assistant", "A"), message("user", "and?"), message("assistant", "B")]
    two = [message("user", "hi"), message("assistant", "A"), message("user", "and?"), message("assistant", "C")]
    paired = pair_rollouts(one, two)
    assert [(turn.message and turn.message.content, turn.is_same) for turn in paired] == [("hi", True), ("and?", False)]


def test_a_rollout_that_stopped_early_leaves_a_gap() -> None:
    one = [message("system", "begin"), message("user", "hi"), message("assistant", "A"), message("user", "and?")]
    paired = pair_rollouts(one, [])
    assert [turn.message and turn.message.content for turn in paired] == [None, "hi", "and?"]
    assert all(not turn.candidate for turn in paired)
    assert pair_rollouts([], []) == []


def test_the_chart_links_to_the_rollouts_of_each_candidate() -> None:
    tried = join_evaluations(found([candidate(0, score=0.5), candidate(1, score=0.9)], []))
    chart = score_chart(7, tried)
    assert 'href="/optimisations/7?candidate=1"' in chart
    assert "candidate=0" not in chart
