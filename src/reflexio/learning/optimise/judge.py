"""Who did better. Each pair is shown in both orders, so that the place of a replay decides nothing."""

import math

from reflexio.models.rollout import Comparison, Feedback, Judgement, Verdict

EVEN = Judgement("tie", 0.5, 3)
SAME = Judgement("tie", 0.5, 3, "Both replays are the same.")
MOST_POINTS = 10


def aborted(reason: str) -> Judgement:
    return Judgement("aborted", 0.0, 0, reason)


def settle(incumbent_first: Comparison, candidate_first: Comparison) -> Judgement:
    """Both opinions in one. Where they contradict each other, nobody has won."""
    verdicts = {_winner(incumbent_first, "incumbent", "candidate"), _winner(candidate_first, "candidate", "incumbent")}
    verdict: Verdict = verdicts.pop() if len(verdicts) == 1 else "tie"
    return Judgement(
        verdict,
        (incumbent_first.score + 1.0 - candidate_first.score) / 2,
        math.floor((incumbent_first.likert + 6 - candidate_first.likert) / 2),
        _rationale(incumbent_first, candidate_first),
        _feedback(incumbent_first, candidate_first),
    )


def _winner(seen: Comparison, first: Verdict, second: Verdict) -> Verdict:
    match seen.verdict:
        case "first":
            return first
        case "second":
            return second
        case "tie":
            return "tie"


def _rationale(incumbent_first: Comparison, candidate_first: Comparison) -> str:
    said = {
        "The incumbent shown first": incumbent_first.rationale,
        "The candidate shown first": candidate_first.rationale,
    }
    return "\n".join(f"{order}: {words}" for order, words in said.items() if words)


def _feedback(incumbent_first: Comparison, candidate_first: Comparison) -> Feedback:
    return Feedback(
        failure_modes=_points(incumbent_first.wrong_in_both, candidate_first.wrong_in_both),
        regressions=_points(incumbent_first.worse_in_second, candidate_first.worse_in_first),
        winning_behaviors=_points(incumbent_first.better_in_second, candidate_first.better_in_first),
        missing_instructions=_points(incumbent_first.missing_instructions, candidate_first.missing_instructions),
        recommended_mutations=_points(incumbent_first.recommended_mutations, candidate_first.recommended_mutations),
    )


def _points(*several: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(point for points in several for point in points))[:MOST_POINTS]
