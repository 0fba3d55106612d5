"""How the judge's two verdicts on one pair of rollouts are combined.

The judge sees every pair in both orders, so that the position of a rollout does not decide.
"""

import math
from collections.abc import Mapping

from reflexio.models.optimisation import Comparison, Feedback, Judgement, OrderedVerdict, Place, Verdict

EVEN = Judgement("tie", 0.5, 3)
SAME = Judgement("tie", 0.5, 3, "Both replays are the same.")
MOST_POINTS = 10
INCUMBENT_FIRST: Mapping[Place, Verdict] = {"first": "incumbent", "second": "candidate", "tie": "tie"}
CANDIDATE_FIRST: Mapping[Place, Verdict] = {"first": "candidate", "second": "incumbent", "tie": "tie"}


def aborted(reason: str) -> Judgement:
    """The judgement of a trial that failed."""
    return Judgement("aborted", 0.0, 0, reason)


def combine_verdicts(incumbent_first: Comparison, candidate_first: Comparison) -> Judgement:
    """Combines the verdicts of both orders into one judgement. Verdicts that contradict each other are a tie."""
    winners = {INCUMBENT_FIRST[incumbent_first.verdict], CANDIDATE_FIRST[candidate_first.verdict]}
    rationales = {
        "The incumbent shown first": incumbent_first.rationale,
        "The candidate shown first": candidate_first.rationale,
    }
    candidates_score, candidates_likert = 1.0 - candidate_first.score, 6 - candidate_first.likert
    return Judgement(
        winners.pop() if len(winners) == 1 else "tie",
        (incumbent_first.score + candidates_score) / 2,
        math.floor((incumbent_first.likert + candidates_likert) / 2),
        "\n".join(f"{order}: {rationale}" for order, rationale in rationales.items() if rationale),
        Feedback(
            failure_modes=_merge(incumbent_first.wrong_in_both, candidate_first.wrong_in_both),
            regressions=_merge(incumbent_first.worse_in_second, candidate_first.worse_in_first),
            winning_behaviors=_merge(incumbent_first.better_in_second, candidate_first.better_in_first),
            missing_instructions=_merge(incumbent_first.missing_instructions, candidate_first.missing_instructions),
            recommended_mutations=_merge(incumbent_first.recommended_mutations, candidate_first.recommended_mutations),
        ),
        (
            OrderedVerdict(
                "incumbent",
                INCUMBENT_FIRST[incumbent_first.verdict],
                incumbent_first.score,
                incumbent_first.likert,
                incumbent_first.rationale,
            ),
            OrderedVerdict(
                "candidate",
                CANDIDATE_FIRST[candidate_first.verdict],
                candidates_score,
                candidates_likert,
                candidate_first.rationale,
            ),
        ),
    )


def _merge(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))[:MOST_POINTS]
