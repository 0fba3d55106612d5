"""What a run can cost at most, before it begins."""

from collections.abc import Sequence

from reflexio.learning.optimise.windows import Split
from reflexio.models.config import PlaybookOptimizerConfig
from reflexio.models.optimisation import OptimizationEstimate
from reflexio.models.rollout import Scene

ORDERS = 2
OVERLAP = 5
"""GEPA merges two wordings only when so many held-out windows know both."""


def minibatch(config: PlaybookOptimizerConfig, train: int) -> int:
    """Windows shown to one reflection: never the same one twice."""
    return max(1, min(config.reflection_minibatch_size, train))


def estimate(config: PlaybookOptimizerConfig, windows: Split, scenes: Sequence[Scene]) -> OptimizationEstimate:
    batch, held_out = minibatch(config, len(windows.train)), len(windows.validation)
    trials = most_trials(config, batch, held_out)
    longest = max((each.questions for each in scenes), default=0)
    return OptimizationEstimate(
        train_windows=len(windows.train),
        validation_windows=held_out,
        evaluations=trials,
        assistant_calls=trials * longest + sum(each.questions for each in scenes),
        judge_calls=trials * ORDERS,
        # A round whose reflection brings nothing costs no more than the look at its parent.
        reflection_calls=max(0, -(-(config.max_metric_calls - held_out) // batch)),
        assistant_retries_per_call=config.webhook_max_retries,
    )


def most_trials(config: PlaybookOptimizerConfig, batch: int, held_out: int) -> int:
    """The most new pairs of wording and window. GEPA looks at its budget between rounds, so the last may go beyond."""
    left = config.max_metric_calls - held_out
    if left <= 0:
        return 0
    new, price = batch + held_out, 2 * batch + held_out
    # A merge has no parents to look at first: all that it costs is new.
    merges = config.use_merge and config.max_merge_invocations > 0 and held_out >= OVERLAP
    return (left - 1 if merges else (left - 1) * new // price) + new
