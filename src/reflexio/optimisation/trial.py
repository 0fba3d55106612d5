"""Trials: one wording in one scenario, with both rollouts, two verdicts of the critic and one judgement.

A failing assistant or an unreadable verdict fails that trial only. A refused key or bill and an empty token budget
end the run, because they would end every trial.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import TypeVar

from pydantic import TypeAdapter

from reflexio.errors import Conflict, ProviderError, ProviderRefused, ProviderUnavailable
from reflexio.jobs.token_budget import USED_UP, left, record, tokens
from reflexio.models.extraction import Spend
from reflexio.models.optimisation import (
    Comparison,
    Guidance,
    Judgement,
    PlaybookOptimizationJob,
    Rollout,
    Scenario,
    Trial,
)
from reflexio.optimisation.judge import EVEN, SAME, aborted, combine_verdicts
from reflexio.optimisation.replay_windows import digest
from reflexio.optimisation.rollout import RolloutPlayer
from reflexio.organisations.configuration import stored_config
from reflexio.ports.clock import Clock
from reflexio.ports.learner import Critic, RewordRequest
from reflexio.ports.storage import Store, Tx
from reflexio.ports.work import Json, Steps

T = TypeVar("T")

COMPARISON = TypeAdapter(Comparison)
ATTEMPTS, BACKOFF = 3, 2.0
SIDE_BY_SIDE = 4
NOT_PLAYED = Rollout()
OPERATION = "optimise"
BUDGET_RECHECK = 5
"""Seconds between two looks at the stored budget."""


@dataclass
class OptimisationBudget:
    """The daily token budget of the organisation as one run sees it. Other work spends from it, too."""

    store: Store
    clock: Clock
    _calls: int = 0
    _pending: list[Spend] = field(default_factory=list)
    _left: float = 0.0
    _checked_at: int | None = None

    async def check(self) -> None:
        """Raises Conflict when no tokens are left for today."""
        now = self.clock.now()
        if self._checked_at is None or abs(now - self._checked_at) >= BUDGET_RECHECK:
            stored_left = await self.store.read(lambda tx: left(tx, stored_config(tx), now))
            self._left, self._checked_at = stored_left - sum(map(tokens, self._pending)), now
        if self._left <= 0:
            raise Conflict(USED_UP)

    def spend(self, spend: Spend) -> None:
        """Counts one critic call, also one that was answered before a crash."""
        self._calls += 1
        self._pending.append(spend)
        self._left -= tokens(spend)

    def take_pending(self, now: int) -> Callable[[Tx, PlaybookOptimizationJob], PlaybookOptimizationJob]:
        """Takes the spend that is not stored yet, as a function that stores it and returns the job with its new count.

        Calls that are replayed after a crash report their spend again. The calls between two writes are always the
        same ones, so the number of calls tells what was stored before.
        """
        pending, self._pending, calls = self._pending, [], self._calls

        def record_pending(tx: Tx, job: PlaybookOptimizationJob) -> PlaybookOptimizationJob:
            if calls <= job.accounted_questions:
                return job
            for spend in pending:
                record(tx, spend, OPERATION, now)
            return job.changed(accounted_questions=calls)

        return record_pending


@dataclass
class DurableCritic:
    """The critic, called in durable steps and paid from the budget. An unavailable model is retried."""

    steps: Steps
    critic: Critic
    budget: OptimisationBudget
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    judge_calls: int = 0
    reflection_calls: int = 0

    async def compare(self, step: str, scenario: Scenario, trigger: str, first: Rollout, second: Rollout) -> Json:
        """A comparison as JSON, or under `error` the reason why there is none."""

        async def ask() -> tuple[Json, Spend]:
            compared = await self.critic.compare(scenario, trigger, first.played(scenario), second.played(scenario))
            return COMPARISON.dump_python(compared.comparison, mode="json"), compared.spend

        comparison = await self._run_step(step, ask)
        self.judge_calls += 1
        return comparison

    async def reword(self, request: RewordRequest) -> str:
        """A new wording, or an empty string when the critic has none."""

        async def ask() -> tuple[Json, Spend]:
            reworded = await self.critic.reword(request)
            return {"content": reworded.content}, reworded.spend

        answer = await self._run_step(f"reflect/{self.reflection_calls}", ask)
        self.reflection_calls += 1
        return str(answer.get("content", ""))

    async def _run_step(self, step: str, ask: Callable[[], Awaitable[tuple[Json, Spend]]]) -> Json:
        result = await self.steps(step, lambda: self._ask_with_retries(ask))
        self.budget.spend(Spend(**result["spend"]))
        answer: Json = result["answer"]
        return answer

    async def _ask_with_retries(self, ask: Callable[[], Awaitable[tuple[Json, Spend]]]) -> Json:
        """The answer and its cost. A failure is an answer, too; only a refusal is raised."""
        spent, attempt = Spend(), 1
        while True:
            await self.budget.check()
            try:
                answer, spend = await ask()
                return {"answer": answer, "spend": asdict(spent + spend)}
            except ProviderError as error:
                spent += error.spend or Spend()
                if isinstance(error, ProviderRefused):
                    self.budget.spend(spent)
                    raise
                if attempt == ATTEMPTS or not isinstance(error, ProviderUnavailable):
                    return {"answer": {"error": str(error)}, "spend": asdict(spent)}
            await self.pause(BACKOFF**attempt)
            attempt += 1


@dataclass
class TrialRunner:
    """Tries wordings against the incumbent. Each pair of wording and scenario is tried once in a run."""

    incumbent: Guidance
    player: RolloutPlayer
    critic: DurableCritic
    trials: dict[tuple[str, str], Trial] = field(default_factory=dict)
    _judgements: dict[str, "asyncio.Future[Judgement]"] = field(default_factory=dict)
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(SIDE_BY_SIDE))

    @property
    def candidate_trials(self) -> list[Trial]:
        return [trial for trial in self.trials.values() if trial.content != self.incumbent.content]

    def counts(self) -> Json:
        """The counters that a job shows."""
        trials = self.candidate_trials
        return {
            "evaluations": len(trials),
            "aborted_evaluations": sum(bool(trial.error) for trial in trials),
            "assistant_calls": self.player.calls,
            "judge_calls": self.critic.judge_calls,
            "reflection_calls": self.critic.reflection_calls,
        }

    async def run(self, content: str, scenario: Scenario, *, played: bool) -> Trial:
        """Tries a wording. The incumbent against itself is a tie, and is only played when `played` asks for it."""
        if content == self.incumbent.content and not played:
            return Trial(content, scenario, NOT_PLAYED, NOT_PLAYED, EVEN)
        if (content, scenario.key) not in self.trials:
            async with self._slots:
                self.trials[content, scenario.key] = await self._compare(content, scenario)
        return self.trials[content, scenario.key]

    async def _compare(self, content: str, scenario: Scenario) -> Trial:
        incumbent = await self.player.rollout(scenario, self.incumbent)
        if incumbent.error:
            candidate, judgement = NOT_PLAYED, aborted(f"With the incumbent: {incumbent.error}")
        elif content == self.incumbent.content:
            candidate, judgement = incumbent, EVEN
        else:
            guidance = Guidance(self.incumbent.id, content, self.incumbent.trigger)
            candidate = await self.player.rollout(scenario, guidance)
            judgement = await self._judge(scenario, incumbent, candidate)
        error = judgement.rationale if judgement.verdict == "aborted" else ""
        return Trial(content, scenario, incumbent, candidate, judgement, error)

    async def _judge(self, scenario: Scenario, incumbent: Rollout, candidate: Rollout) -> Judgement:
        if candidate.error:
            return aborted(candidate.error)
        if candidate == incumbent:
            return SAME
        # Wordings that make the assistant give the same answers are judged once.
        key = f"{scenario.key}/{digest(repr(candidate.answers))}"
        if key not in self._judgements:
            self._judgements[key] = asyncio.ensure_future(self._ask_judge(key, scenario, incumbent, candidate))
        return await self._judgements[key]

    async def _ask_judge(self, key: str, scenario: Scenario, incumbent: Rollout, candidate: Rollout) -> Judgement:
        trigger = self.incumbent.trigger
        comparisons = await gather_all(
            [
                self.critic.compare(f"judge/{key}/incumbent-first", scenario, trigger, incumbent, candidate),
                self.critic.compare(f"judge/{key}/candidate-first", scenario, trigger, candidate, incumbent),
            ]
        )
        for comparison in comparisons:
            if "error" in comparison:
                return aborted(f"The judge gave no opinion: {comparison['error']}")
        return combine_verdicts(*map(COMPARISON.validate_python, comparisons))


async def gather_all(calls: Iterable[Awaitable[T]]) -> list[T]:
    """All results, in order. When a call fails, the others finish first, because they are already paid for."""
    futures = [asyncio.ensure_future(call) for call in calls]
    await asyncio.gather(*futures, return_exceptions=True)
    return [future.result() for future in futures]
