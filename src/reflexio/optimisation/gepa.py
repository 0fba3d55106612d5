"""The search: GEPA proposes and selects wordings, and this module tries them. Same seed and answers, same search.

GEPA blocks, so it runs in a thread. The thread requests one call at a time and waits for it: all calls run in the
workflow's own task, in order, and a workflow that is stopped also stops its thread.
"""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from reflexio.errors import AssistantFailed
from reflexio.models.config import PlaybookOptimizerConfig
from reflexio.models.optimisation import Guidance, OptimizationEstimate, Scenario, Trial
from reflexio.optimisation.records import SearchLog
from reflexio.optimisation.replay_windows import WindowSplit
from reflexio.optimisation.trial import DurableCritic, TrialRunner, gather_all
from reflexio.ports.learner import RewordRequest

if TYPE_CHECKING:
    from gepa.core.adapter import EvaluationBatch

T = TypeVar("T")
R = TypeVar("R")

log = logging.getLogger("reflexio.optimise")

COMPONENT = "playbook_content"
ORDERS = 2
"""Calls of the judge for each trial: one for each order of the two rollouts."""
MERGE_OVERLAP = 5
"""GEPA merges two wordings only when it has scores of both for this many held-out windows."""


# What a search can cost


def estimate(
    config: PlaybookOptimizerConfig, windows: WindowSplit, scenarios: Sequence[Scenario]
) -> OptimizationEstimate:
    """The most that a run can cost, before it begins."""
    batch, held_out = minibatch_size(config, len(windows.train)), len(windows.validation)
    trials = most_trials(config, batch, held_out)
    longest = max((scenario.questions for scenario in scenarios), default=0)
    return OptimizationEstimate(
        train_windows=len(windows.train),
        validation_windows=held_out,
        evaluations=trials,
        assistant_calls=trials * longest + sum(scenario.questions for scenario in scenarios),
        judge_calls=trials * ORDERS,
        # A round whose reflection proposes nothing costs only the evaluation of its parent.
        reflection_calls=max(0, -(-(config.max_metric_calls - held_out) // batch)),
        assistant_retries_per_call=config.webhook_max_retries,
    )


def minibatch_size(config: PlaybookOptimizerConfig, train: int) -> int:
    """The number of windows in one reflection, each at most once."""
    return max(1, min(config.reflection_minibatch_size, train))


def most_trials(config: PlaybookOptimizerConfig, batch: int, held_out: int) -> int:
    """The most new pairs of wording and window. GEPA checks its budget between rounds, so the last may exceed it."""
    left = config.max_metric_calls - held_out
    if left <= 0:
        return 0
    new, price = batch + held_out, 2 * batch + held_out
    # A merge evaluates no parents first: everything that it costs is new.
    merges = config.use_merge and config.max_merge_invocations > 0 and held_out >= MERGE_OVERLAP
    return (left - 1 if merges else (left - 1) * new // price) + new


# The thread that GEPA runs in


class SearchStopped(BaseException):
    """Ends the search thread. Not an Exception, because GEPA catches those and continues."""


class WorkflowCaller(Protocol):
    def __call__(self, call: Callable[[], Awaitable[R]]) -> R:
        """Runs `call` in the workflow's task and waits for it. Raises SearchStopped when it fails or nobody serves."""
        ...


async def run_in_thread(search: Callable[[WorkflowCaller], T]) -> T:
    """Runs `search` in its own thread and serves its calls. A call that fails ends the search and is raised here."""
    loop = asyncio.get_running_loop()
    requests: asyncio.Queue[tuple[Callable[[], Awaitable[Any]], Future[Any]] | None] = asyncio.Queue()
    outcome: Future[T] = Future()
    closed = threading.Event()

    def submit(request: tuple[Callable[[], Awaitable[Any]], "Future[Any]"] | None) -> None:
        try:
            loop.call_soon_threadsafe(requests.put_nowait, request)
        except RuntimeError:  # The loop is closed: the process ends.
            raise SearchStopped from None

    def call_workflow(call: Callable[[], Awaitable[R]]) -> R:
        answer: Future[R] = Future()
        if closed.is_set():
            raise SearchStopped
        submit((call, answer))
        return answer.result()

    def run() -> None:
        try:
            outcome.set_result(search(call_workflow))
        except BaseException as error:  # noqa: BLE001  raised to the caller below
            outcome.set_exception(error)
        with suppress(SearchStopped):
            submit(None)

    # Its own thread: the shared threads are few, and a search may take hours.
    threading.Thread(target=run, name="reflexio-optimise", daemon=True).start()
    try:
        while (request := await requests.get()) is not None:
            call, answer = request
            try:
                answer.set_result(await call())
            except BaseException:
                answer.set_exception(SearchStopped())
                raise
    finally:
        closed.set()
        while not requests.empty():
            if unserved := requests.get_nowait():
                unserved[1].set_exception(SearchStopped())
    return outcome.result()


# The search


@dataclass(frozen=True)
class GepaSearch:
    """One search. Its trials are in `runner`, its candidates and events in `log`."""

    runner: TrialRunner
    critic: DurableCritic
    train: tuple[Scenario, ...]
    validation: tuple[Scenario, ...]
    config: PlaybookOptimizerConfig
    seed: int
    log: SearchLog

    async def run(self) -> None:
        """Searches until the budget is used up or a wording reaches `early_stop_score`."""
        try:
            await run_in_thread(self._optimize)
        finally:
            await self.log.wait_until_written()

    def _optimize(self, call: WorkflowCaller) -> None:
        from gepa.api import optimize
        from gepa.utils import ScoreThresholdStopper

        incumbent = self.runner.incumbent.content
        self.log.candidate(incumbent)
        optimize(
            seed_candidate={COMPONENT: incumbent},
            trainset=WindowLoader(self.train),
            valset=None if self.train == self.validation else WindowLoader(self.validation),
            adapter=cast(Any, _GepaAdapter(self, call)),
            candidate_selection_strategy="pareto",
            frontier_type="instance",
            batch_sampler="epoch_shuffled",
            reflection_minibatch_size=minibatch_size(self.config, len(self.train)),
            use_merge=self.config.use_merge and self.config.max_merge_invocations > 0,
            max_merge_invocations=self.config.max_merge_invocations,
            max_metric_calls=self.config.max_metric_calls,
            stop_callbacks=ScoreThresholdStopper(self.config.early_stop_score),
            cache_evaluation=True,
            track_best_outputs=False,
            callbacks=[cast(Any, _GepaListener(self.log, call))],
            logger=_GepaLogger(),
            seed=self.seed,
        )

    async def evaluate(self, content: str, scenarios: Sequence[Scenario], *, played: bool) -> list[Trial]:
        before = set(self.runner.trials)
        trials = await gather_all(self.runner.run(content, scenario, played=played) for scenario in scenarios)
        self.log.candidate(content)
        if new := [trial for key, trial in self.runner.trials.items() if key not in before]:
            await self.log.flush(new)
        self._check_incumbent()
        return trials

    def _check_incumbent(self) -> None:
        """Ends the search when the assistant fails with the incumbent in too many windows: nothing can be compared
        there, and with too few windows left to search or to decide, further calls would be wasted."""
        failed = {
            scenario: trial.error
            for (_, scenario), trial in self.runner.trials.items()
            if trial.error and trial.incumbent.error
        }
        train = [scenario for scenario in self.train if scenario.key not in failed]
        validation = [scenario for scenario in self.validation if scenario.key not in failed]
        if not train or len(validation) < min(self.config.min_commit_windows, len(self.validation)):
            raise AssistantFailed(f"The assistant fails in too many windows. {next(iter(failed.values()))}")

    async def reword(self, content: str, trials: Sequence[Trial]) -> str:
        """A new wording, or an empty string when the critic has none. It sees nothing of held-out windows."""
        incumbent = self.runner.incumbent
        shown = {trial.scene.key for trial in trials}
        # Sorted by candidate, not by which trial finished first: a replay must send the same request.
        earlier = sorted(
            (trial for trial in self.runner.candidate_trials if trial.scene.key in shown and trial.content != content),
            key=lambda trial: (self.log.candidate(trial.content).place, trial.scene.key),
        )
        guidance = Guidance(incumbent.id, content, incumbent.trigger)
        reworded = await self.critic.reword(RewordRequest(guidance, tuple(trials), tuple(earlier)))
        if not reworded or reworded == content:
            return ""
        self.log.candidate(reworded, [content])
        return reworded


class WindowLoader:
    """Gives GEPA the scenarios by their keys.

    GEPA stores scores by key. With its own numbers, the first training window and the first held-out window would
    both be 0, and one would get the score of the other.
    """

    def __init__(self, scenarios: Sequence[Scenario]) -> None:
        self._scenarios = {scenario.key: scenario for scenario in scenarios}

    def all_ids(self) -> Sequence[str]:
        return list(self._scenarios)

    def fetch(self, ids: Sequence[str]) -> list[Scenario]:
        return [self._scenarios[key] for key in ids]

    def __len__(self) -> int:
        return len(self._scenarios)


@dataclass
class _GepaAdapter:
    search: GepaSearch
    call: WorkflowCaller

    def evaluate(
        self, batch: list[Scenario], candidate: dict[str, str], capture_traces: bool = False
    ) -> "EvaluationBatch[Trial, Trial]":
        from gepa.core.adapter import EvaluationBatch

        scenarios = list({scenario.key: scenario for scenario in batch}.values())
        content = candidate[COMPONENT]
        results = self.call(lambda: self.search.evaluate(content, scenarios, played=capture_traces))
        by_key = {trial.scene.key: trial for trial in results}
        trials = [by_key[scenario.key] for scenario in batch]
        scores = [trial.judgement.score for trial in trials]
        return EvaluationBatch(outputs=trials, scores=scores, trajectories=trials if capture_traces else None)

    def make_reflective_dataset(
        self, candidate: dict[str, str], eval_batch: "EvaluationBatch[Trial, Trial]", components_to_update: list[str]
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        trials = {trial.scene.key: trial for trial in eval_batch.trajectories or ()}
        return {COMPONENT: [{"trial": trial} for trial in trials.values()]}

    def propose_new_texts(
        self,
        candidate: dict[str, str],
        reflective_dataset: Mapping[str, Sequence[Mapping[str, Any]]],
        components_to_update: list[str],
    ) -> dict[str, str]:
        content = candidate[COMPONENT]
        trials = [row["trial"] for row in reflective_dataset[COMPONENT]]
        reworded = self.call(lambda: self.search.reword(content, trials))
        return {COMPONENT: reworded} if reworded else {}


@dataclass
class _GepaListener:
    """Logs all events of GEPA, which calls the method `on_<event>` for each."""

    log: SearchLog
    call: WorkflowCaller

    def __getattr__(self, name: str) -> Callable[[Mapping[str, Any]], None]:
        if not name.startswith("on_"):
            raise AttributeError(name)
        kind = name.removeprefix("on_")

        def listen(event: Mapping[str, Any]) -> None:
            self.log.add_event(kind, event)
            # The other events are written along with the next trials.
            if kind == "optimization_end":
                self.call(self.log.flush)

        return listen


class _GepaLogger:
    def log(self, message: str) -> None:
        log.debug("%s", message)
