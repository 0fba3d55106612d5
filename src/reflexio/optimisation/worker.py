"""The durable workflow of an optimisation job: prepare, search, finish.

Every call to the assistant and to the critic is a step. After a crash the search runs again from the same seed and
gets the stored answers, so it reaches the same point without repeating a call.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass

from reflexio.errors import InvalidRequest, ProviderRefused, ReflexioError
from reflexio.models.config import Config, PlaybookOptimizerConfig
from reflexio.models.learning import Kind, Learning
from reflexio.models.optimisation import Guidance, JobStatus, Scenario, Trial
from reflexio.optimisation.adopt import CHANGED, AdoptionDecision, adopt, decide
from reflexio.optimisation.gepa import GepaSearch
from reflexio.optimisation.records import SearchLog, get_job
from reflexio.optimisation.replay_windows import ReplayWindow, WindowSplit, build_scenarios
from reflexio.optimisation.rollout import RolloutPlayer
from reflexio.optimisation.service import NO_MODEL, WORKFLOW, OptimisationBackends, plan_run
from reflexio.optimisation.trial import DurableCritic, OptimisationBudget, TrialRunner
from reflexio.organisations.configuration import stored_config
from reflexio.ports.assistant import Assistant
from reflexio.ports.clock import Clock
from reflexio.ports.storage import Database, LearningFilter, Store, Tx
from reflexio.ports.work import Json, Steps, Work

ERASED = "Turns of its source windows were deleted during the run; nothing was changed."


class OptimisationSkipped(ReflexioError):
    """There is nothing to do."""

    def __str__(self) -> str:
        return self.detail


@dataclass(frozen=True)
class PreparedRun:
    """What a run began with. It stays the same whatever is configured or changed in the meantime."""

    target: Learning
    seed: int
    settings: PlaybookOptimizerConfig
    windows: WindowSplit
    scenarios: dict[str, Scenario]


@dataclass(frozen=True)
class OptimisationWorker:
    """Does the work of jobs. Calls `on_refused` when a provider refuses, and `on_success` when a run completes."""

    database: Database
    clock: Clock
    backends: OptimisationBackends
    on_refused: Callable[[Store, ProviderRefused], Awaitable[None]]
    on_success: Callable[[Store], Awaitable[None]]
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep

    def register(self, work: Work) -> None:
        work.register(WORKFLOW, self.optimise)

    async def optimise(self, steps: Steps, data: Json) -> Json:
        store = self.database.of(data["org_id"])
        budget = OptimisationBudget(store, self.clock)
        run = _WorkflowRun(store, data["job_id"], steps, self.clock, self.backends, budget, self.pause)
        try:
            await run.perform()
            await self.on_success(store)
        except OptimisationSkipped as reason:
            await run.end("skipped", str(reason))
        except ReflexioError as error:
            if isinstance(error, ProviderRefused):
                await self.on_refused(store, error)
            await run.end("failed", str(error))
        return {}


@dataclass(frozen=True)
class _WorkflowRun:
    store: Store
    job_id: int
    steps: Steps
    clock: Clock
    backends: OptimisationBackends
    budget: OptimisationBudget
    pause: Callable[[float], Awaitable[None]]

    async def perform(self) -> None:
        prepared, config = await self._load(await self.steps("prepare", self._prepare))
        try:
            assistant = await self.backends.assistant(config.playbook_optimizer_config)
        except InvalidRequest as error:
            raise OptimisationSkipped(str(error)) from error
        try:
            trials, log = await self._search(prepared, config, assistant)
        finally:
            await assistant.aclose()
        if trials and all(trial.error for trial in trials):
            raise ReflexioError.with_message(f"No trial succeeded. {trials[-1].error}")
        decision = decide(trials, prepared.windows.held_out, prepared.settings)
        await self.steps("finish", lambda: self._finish(prepared, log, decision))

    async def end(self, status: JobStatus, reason: str) -> None:
        """Stores the spend, and ends the job unless it has ended."""
        now = self.clock.now()
        record_spend = self.budget.take_pending(now)

        def write(tx: Tx) -> None:
            job = record_spend(tx, get_job(tx, self.job_id))
            tx.optimisations.put(job if job.has_ended else job.ended(status, reason, now))

        await self.store.write(write)

    async def _prepare(self) -> Json:
        """Decides whether the job can run, and what it runs with."""
        config, now = await self.store.read(stored_config), self.clock.now()
        backend_obstacle = await self.backends.obstacle(config)

        def write(tx: Tx) -> Json:
            job = get_job(tx, self.job_id)
            plan = plan_run(tx, config, job.target_kind, job.target_id, now)
            if obstacle := plan.obstacle or backend_obstacle:
                return {"skip": obstacle}
            settings = config.playbook_optimizer_config
            if not job.has_ended:
                most = settings.max_metric_calls
                tx.optimisations.put(job.changed(status="running", max_metric_calls=most, updated_at=now))
            return {
                "target_kind": job.target_kind,
                "target_id": job.target_id,
                "content": plan.target.content,
                "seed": job.seed,
                "settings": settings.model_dump(mode="json", exclude={"webhook_auth_header"}),
                "train": list(map(asdict, plan.windows.train)),
                "validation": list(map(asdict, plan.windows.validation)),
            }

        return await self.store.write(write)

    async def _load(self, preparation: Json) -> tuple[PreparedRun, Config]:
        """The run as it was prepared, perhaps before a crash. Raises OptimisationSkipped when it cannot go on."""
        if "skip" in preparation:
            raise OptimisationSkipped(preparation["skip"])
        settings = PlaybookOptimizerConfig.model_validate(preparation["settings"])
        train, validation = (tuple(map(ReplayWindow.read, preparation[name])) for name in ("train", "validation"))
        windows = WindowSplit(train, validation)
        where = LearningFilter(Kind(preparation["target_kind"]), ids=(preparation["target_id"],), statuses=None)

        def read(tx: Tx) -> tuple[PreparedRun, Config]:
            target = tx.learnings.get(where)
            if target is None or target.content != preparation["content"]:
                raise OptimisationSkipped(CHANGED)
            scenarios = build_scenarios(tx, windows.all, target, settings.max_turns)
            if len(scenarios) < len(windows.all):
                raise OptimisationSkipped(ERASED)
            by_key = {scenario.key: scenario for scenario in scenarios}
            return PreparedRun(target, preparation["seed"], settings, windows, by_key), stored_config(tx)

        return await self.store.read(read)

    async def _search(
        self, prepared: PreparedRun, config: Config, assistant: Assistant
    ) -> tuple[list[Trial], SearchLog]:
        model = self.backends.critic(config)
        if model is None:
            raise OptimisationSkipped(NO_MODEL)
        target, windows = prepared.target, prepared.windows
        critic = DurableCritic(self.steps, model, self.budget, self.pause)
        incumbent = Guidance(target.id, target.content, target.trigger)
        runner = TrialRunner(incumbent, RolloutPlayer(self.steps, assistant), critic)
        log = SearchLog(self.store, self.job_id, self.clock, self.budget, runner, windows.held_out)
        train, validation = (
            tuple(prepared.scenarios[window.key] for window in part) for part in (windows.train, windows.validation)
        )
        await GepaSearch(runner, critic, train, validation, prepared.settings, prepared.seed, log).run()
        return runner.candidate_trials, log

    async def _finish(self, prepared: PreparedRun, log: SearchLog, decision: AdoptionDecision) -> Json:
        """Applies the decision in one transaction, unless the job has ended or turns were deleted."""
        now, windows = self.clock.now(), prepared.windows.all
        record_spend, progress = self.budget.take_pending(now), log.progress()

        def write(tx: Tx) -> Json:
            job = record_spend(tx, get_job(tx, self.job_id))
            if job.has_ended:
                return {}
            if len(build_scenarios(tx, windows, prepared.target, 1)) < len(windows):
                tx.optimisations.put(job.ended("skipped", ERASED, now, **progress))
                return {}
            successor_id = adopt(tx, prepared.target, decision.best, self.job_id, now) if decision.adopted else None
            winner = decision.best if successor_id else ""
            tx.optimisations.keep_wordings(self.job_id, list(log.scored_candidates(winner, now)))
            candidate_ids = {candidate.content: candidate.id for candidate in tx.optimisations.wordings(self.job_id)}
            ended = job.ended(
                "completed",
                f"{decision.reason} {CHANGED}" if decision.adopted and not successor_id else decision.reason,
                now,
                best_candidate_id=candidate_ids.get(decision.best),
                best_score=decision.score,
                winner_content=winner or None,
                successor_target_id=successor_id,
                **progress,
            )
            tx.optimisations.put(ended)
            return {}

        return await self.store.write(write)
