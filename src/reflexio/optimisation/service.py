"""Starts, estimates, shows and cancels optimisation jobs.

A job is a row, and its work is one durable workflow. A job that cannot run is skipped, with the obstacle as reason.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from hashlib import sha256

from reflexio.errors import InvalidRequest, NotFound, ProviderRefused, StorageUnavailable
from reflexio.jobs.token_budget import USED_UP, allowed
from reflexio.models.config import Config, PlaybookOptimizerConfig
from reflexio.models.learning import Kind, Learning
from reflexio.models.optimisation import (
    GetPlaybookOptimizationResponse,
    GetPlaybookOptimizationsResponse,
    JobStatus,
    OptimizationEstimate,
    PlaybookOptimizationJob,
    RunPlaybookOptimizationRequest,
    RunPlaybookOptimizationResponse,
    StartedBy,
    TargetKind,
)
from reflexio.models.paging import page
from reflexio.optimisation import gepa
from reflexio.optimisation.adopt import is_open
from reflexio.optimisation.records import describe_job, get_job
from reflexio.optimisation.replay_windows import WindowSplit, build_scenarios, explain_shortage, find_windows
from reflexio.organisations.configuration import stored_config
from reflexio.ports.assistant import Assistant
from reflexio.ports.clock import Clock
from reflexio.ports.learner import Critic
from reflexio.ports.storage import LearningFilter, Store, Tx
from reflexio.ports.work import Work
from reflexio.retrieval.filters import get_one

WORKFLOW = "optimise"
JOBS_KEPT = 500
"""Ended jobs that an organisation keeps."""
NO_MODEL = (
    "Optimisation needs a language model as judge and to propose wordings: set REFLEXIO_MODEL on the server, or "
    "llm_config.generation_model_name."
)
CANCELLED = "Cancelled; nothing was changed."
"""Stored as the reason of cancelled jobs, and compared with it: do not change."""
ASSISTANT_FIELDS = ("webhook_url", "webhook_auth_header", "assistant_script_path", "assistant_script_args")
SWITCHES = {
    Kind.AGENT_PLAYBOOK: ("optimize_agent_playbooks", "auto_update_pending_agent_playbooks"),
    Kind.USER_PLAYBOOK: ("optimize_user_playbooks", "auto_update_user_playbooks"),
}


@dataclass(frozen=True)
class OptimisationBackends:
    """Opens the assistant and the critic that a configuration names.

    `assistant` raises InvalidRequest when none is configured; `critic` returns None without a model.
    """

    assistant: Callable[[PlaybookOptimizerConfig], Awaitable[Assistant]]
    critic: Callable[[Config], Critic | None]

    async def obstacle(self, config: Config) -> str:
        """Why the assistant or the critic cannot be called; empty when both can."""
        try:
            assistant = await self.assistant(config.playbook_optimizer_config)
            await assistant.aclose()
            return "" if self.critic(config) else NO_MODEL
        except (InvalidRequest, ProviderRefused) as error:
            return str(error)


@dataclass(frozen=True)
class OptimisationPlan:
    """A run for one playbook: its windows, its obstacle if there is one, and the most that it can cost."""

    target: Learning
    windows: WindowSplit
    obstacle: str
    estimate: OptimizationEstimate
    fingerprint: str


def plan_run(tx: Tx, config: Config, kind: TargetKind, target_id: int, now: int) -> OptimisationPlan:
    """Raises NotFound when there is no such playbook."""
    settings = config.playbook_optimizer_config
    target = get_one(tx, LearningFilter(Kind(kind), ids=(target_id,)))
    windows = find_windows(tx, target, settings)
    scenarios = build_scenarios(tx, windows.all, target, settings.max_turns)
    estimate = gepa.estimate(settings, windows, scenarios) if windows.all else OptimizationEstimate()
    obstacle = _settings_obstacle(settings, target) or explain_shortage(windows, settings)
    if not obstacle and not allowed(tx, config, now):
        obstacle = USED_UP
    return OptimisationPlan(target, windows, obstacle, estimate, fingerprint(target, settings))


def _settings_obstacle(settings: PlaybookOptimizerConfig, target: Learning) -> str:
    kind = target.kind.value
    enabling, adopting = SWITCHES[target.kind]
    if not settings.enabled:
        return "Optimisation is disabled: set playbook_optimizer_config.enabled."
    if not getattr(settings, enabling):
        return f"Optimisation of {kind}s is off: set playbook_optimizer_config.{enabling}."
    if not getattr(settings, adopting):
        return f"There is no adoption path: a winner could not be kept while {adopting} is false."
    if not is_open(target):
        state = target.review.value if target.kind is Kind.AGENT_PLAYBOOK else target.status.value
        return f"Only current, pending {kind}s are optimised; this one is {target.status.value or 'current'}, {state}."
    return ""


def fingerprint(target: Learning, settings: PlaybookOptimizerConfig) -> str:
    """Stays the same while a run would be the same: hash of wording and settings, slash, number of windows."""
    parts = (target.content, target.trigger, settings.model_dump(mode="json"))
    windows = target.details.get("source_windows") or target.details.get("source_interaction_ids") or ()
    return f"{sha256(repr(parts).encode('utf-8', 'replace')).hexdigest()[:16]}/{len(windows)}"


def job_key(org_id: str, job_id: int) -> str:
    return f"optimise:{org_id}:{job_id}"


@dataclass
class OptimisationService:
    """The verbs of optimisation: run, estimate, list, show, cancel."""

    work: Work
    clock: Clock
    backends: OptimisationBackends
    _watching: dict[str, "asyncio.Task[None]"] = field(default_factory=dict)

    async def check_assistant(self, before: Config, after: Config) -> None:
        """Raises InvalidRequest when `after` names another assistant than `before`, one that cannot be called."""
        settings = after.playbook_optimizer_config
        is_changed = any(
            getattr(settings, name) != getattr(before.playbook_optimizer_config, name) for name in ASSISTANT_FIELDS
        )
        if is_changed and (settings.webhook_url or settings.assistant_script_path):
            await (await self.backends.assistant(settings)).aclose()

    async def run(self, store: Store, request: RunPlaybookOptimizationRequest) -> RunPlaybookOptimizationResponse:
        """Starts a job on request, or estimates its cost. Raises NotFound when there is no such playbook."""
        if request.dry_run:
            return await self.estimate(store, request.target_kind, request.target_id)
        job = await self.start(store, request.target_kind, request.target_id, "hand", seed=request.seed)
        msg = job.decision_reason or f"The job is {job.status}; look at it by its job_id."
        return RunPlaybookOptimizationResponse(
            success=job.status not in ("skipped", "failed"), msg=msg, job_id=job.job_id, status=job.status, job=job
        )

    async def estimate(self, store: Store, kind: TargetKind, target_id: int) -> RunPlaybookOptimizationResponse:
        plan = await self._plan(store, kind, target_id)
        return RunPlaybookOptimizationResponse(
            success=not plan.obstacle,
            msg=plan.obstacle or "No job was started. A run makes at most this many calls, plus retries.",
            status="skipped" if plan.obstacle else "pending",
            estimate=plan.estimate,
        )

    async def list_jobs(self, store: Store, limit: int, cursor: str | None) -> GetPlaybookOptimizationsResponse:
        listing = await store.read(lambda tx: tx.optimisations.page(page(limit, cursor)))
        msg = f"Found {len(listing.rows)} job(s)"
        return GetPlaybookOptimizationsResponse(jobs=listing.rows, msg=msg, next_cursor=listing.cursor)

    async def show_job(self, store: Store, job_id: int, *, details: bool) -> GetPlaybookOptimizationResponse:
        """One job; with `details` also its candidates, evaluations and events. Raises NotFound."""
        return await store.read(lambda tx: describe_job(tx, job_id, details=details))

    async def start(
        self, store: Store, kind: TargetKind, target_id: int, started_by: StartedBy, *, seed: int | None = None
    ) -> PlaybookOptimizationJob:
        """The unfinished job of this playbook if there is one, else a new job. A job that cannot run is skipped."""
        await self.work.ready()
        plan, now = await self._plan(store, kind, target_id), self.clock.now()
        new = PlaybookOptimizationJob(
            target_kind=kind,
            target_id=target_id,
            started_by=started_by,
            seed=secrets.randbelow(2**31) if seed is None else seed,
            incumbent_content=plan.target.content,
            estimate=plan.estimate,
            fingerprint=plan.fingerprint,
            created_at=now,
            updated_at=now,
        )
        if plan.obstacle:
            new = new.ended("skipped", plan.obstacle, now)

        def add(tx: Tx) -> PlaybookOptimizationJob:
            for latest in tx.optimisations.of_target(kind, target_id, 1):
                if not latest.has_ended:
                    return latest
            tx.optimisations.trim(JOBS_KEPT)
            return tx.optimisations.add(new)

        job = await store.write(add)
        if not job.has_ended:
            await self.enqueue(store, job.job_id)
        return job

    async def _plan(self, store: Store, kind: TargetKind, target_id: int) -> OptimisationPlan:
        now = self.clock.now()

        def read(tx: Tx) -> tuple[OptimisationPlan, Config]:
            config = stored_config(tx)
            return plan_run(tx, config, kind, target_id, now), config

        plan, config = await store.read(read)
        return replace(plan, obstacle=plan.obstacle or await self.backends.obstacle(config))

    async def enqueue(self, store: Store, job_id: int) -> None:
        """Enqueues the work of a job. Enqueueing it again has no effect."""
        # One search of an organisation at a time: each holds a slot for long, and learning must not wait for several.
        key, lane = job_key(store.org_id, job_id), f"optimise:{store.org_id}"
        await self.work.enqueue(WORKFLOW, key, {"org_id": store.org_id, "job_id": job_id}, lane=lane)
        if key not in self._watching:
            self._watching[key] = asyncio.create_task(self._watch(store, job_id))
            self._watching[key].add_done_callback(lambda _: self._watching.pop(key, None))

    async def _watch(self, store: Store, job_id: int) -> None:
        """Marks the job as failed when its work ends without storing a result, as after a defect."""
        try:
            work = await self.work.wait(job_key(store.org_id, job_id))
        except (StorageUnavailable, NotFound):
            return  # This process ends; the work continues in the next one.
        if work.state != "done":
            await self._end(store, job_id, "failed", work.error or work.state)

    async def cancel(self, store: Store, job_id: int) -> tuple[PlaybookOptimizationJob, bool]:
        """The job, and whether it was running. A call to the assistant or a model that is under way is given up."""
        await self.work.ready()
        job, stopped = await self._end(store, job_id, "skipped", CANCELLED)
        if stopped:
            await self.work.cancel(job_key(store.org_id, job_id))
        return job, stopped

    async def _end(
        self, store: Store, job_id: int, status: JobStatus, reason: str
    ) -> tuple[PlaybookOptimizationJob, bool]:
        """Ends a job unless it has ended, and returns it and whether it was changed."""
        now = self.clock.now()

        def end(tx: Tx) -> tuple[PlaybookOptimizationJob, bool]:
            job = get_job(tx, job_id)
            if job.has_ended:
                return job, False
            ended = job.ended(status, reason, now)
            tx.optimisations.put(ended)
            return ended, True

        return await store.write(end)
