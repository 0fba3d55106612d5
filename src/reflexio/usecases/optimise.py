"""Optimise: a search for better wording of a playbook is asked for, looked at and stopped here.

A job is a row, and its work one durable workflow. Whatever stands in the way is told as the reason of a skipped job.
"""

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from hashlib import sha256
from zlib import crc32

from reflexio.errors import InvalidRequest, NotFound, ProviderRefused, StorageUnavailable
from reflexio.learning.optimise import cost
from reflexio.learning.optimise.adopt import is_open
from reflexio.learning.optimise.windows import Split, scenes, sources, split, too_few
from reflexio.models.config import Config, PlaybookOptimizerConfig
from reflexio.models.learning import Kind, Learning
from reflexio.models.optimisation import (
    OptimizationEstimate,
    PlaybookOptimizationJob,
    RunPlaybookOptimizationRequest,
    RunPlaybookOptimizationResponse,
    StartedBy,
    TargetKind,
)
from reflexio.ports.assistant import Assistant
from reflexio.ports.critic import Critic
from reflexio.ports.storage import LearningFilter, Store, Tx
from reflexio.ports.work import Json
from reflexio.usecases.configure import stored
from reflexio.usecases.learn import Classroom
from reflexio.usecases.learnings import one
from reflexio.usecases.spend import allowed

WORKFLOW = "optimise"
LANES = 2
"""Searches side by side: each holds a place among all work for long, and learning must not wait for them."""
KEPT = 500
"""Jobs of an organisation that can still be looked at."""
NO_MODEL = (
    "Optimisation needs a language model, as judge and to find better words: set REFLEXIO_MODEL on the server, or "
    "llm_config.generation_model_name."
)
BUDGET = "The daily token budget is used up; raise it, or run this again tomorrow."
CANCELLED = "Cancelled; nothing was changed."


@dataclass(frozen=True)
class Prospect:
    """A playbook to optimise: what stands in the way, if anything, and what a run can cost at most."""

    target: Learning
    windows: Split
    obstacle: str
    estimate: OptimizationEstimate
    fingerprint: str


def prospect(tx: Tx, config: Config, target: Learning, now: int) -> Prospect:
    settings = config.playbook_optimizer_config
    found = sources(tx, target)
    windows = split(found.found, settings)
    estimate = OptimizationEstimate()
    if found.found:
        estimate = cost.estimate(settings, windows, list(scenes(tx, windows.all, target, settings.max_turns)))
    obstacle = _unwanted(settings, target) or too_few(found, settings) or ("" if allowed(tx, config, now) else BUDGET)
    return Prospect(target, windows, obstacle, estimate, fingerprint(target, settings))


def _unwanted(settings: PlaybookOptimizerConfig, target: Learning) -> str:
    kind = target.kind.value
    wanted, adopted = {
        Kind.AGENT_PLAYBOOK: ("optimize_agent_playbooks", "auto_update_pending_agent_playbooks"),
        Kind.USER_PLAYBOOK: ("optimize_user_playbooks", "auto_update_user_playbooks"),
    }[target.kind]
    if not settings.enabled:
        return "Optimisation is disabled: set playbook_optimizer_config.enabled."
    if not getattr(settings, wanted):
        return f"Optimisation of {kind}s is off: set playbook_optimizer_config.{wanted}."
    if not getattr(settings, adopted):
        return f"There is no adoption path: a winner could not be kept while {adopted} is false."
    if not is_open(target):
        standing = target.review.value if target.kind is Kind.AGENT_PLAYBOOK else target.status.value
        return (
            f"Only current, pending {kind}s are optimised; this one is {target.status.value or 'current'}, {standing}."
        )
    return ""


def fingerprint(target: Learning, settings: PlaybookOptimizerConfig) -> str:
    """The same as long as a run would be: the wording and the settings, and behind a slash the number of windows."""
    parts = (target.content, target.trigger, settings.model_dump(mode="json"))
    windows = target.details.get("source_windows") or target.details.get("source_interaction_ids") or ()
    return f"{sha256(repr(parts).encode('utf-8', 'replace')).hexdigest()[:16]}/{len(windows)}"


def named(kind: TargetKind, target_id: int) -> LearningFilter:
    return LearningFilter(Kind(kind), ids=(target_id,))


@dataclass
class Optimiser:
    """Begins and stops searches. `assistant` raises InvalidRequest when there is none; `critic` may be none."""

    classroom: Classroom
    assistant: Callable[[PlaybookOptimizerConfig], Assistant]
    critic: Callable[[Config], Critic | None]
    _watching: dict[str, "asyncio.Task[None]"] = field(default_factory=dict)

    async def run(self, store: Store, asked: RunPlaybookOptimizationRequest) -> RunPlaybookOptimizationResponse:
        """Begins one by hand, or tells what it can cost. Raises NotFound when there is no such playbook."""
        if asked.dry_run:
            return await self._tried_on_paper(store, asked)
        job = await self.begin(store, asked.target_kind, asked.target_id, "hand", seed=asked.seed)
        msg = job.decision_reason or f"The job is {job.status}; look at it by its job_id."
        return RunPlaybookOptimizationResponse(
            success=job.status not in ("skipped", "failed"), msg=msg, job_id=job.job_id, status=job.status, job=job
        )

    async def _tried_on_paper(
        self, store: Store, asked: RunPlaybookOptimizationRequest
    ) -> RunPlaybookOptimizationResponse:
        found = await self.look(store, asked.target_kind, asked.target_id)
        told = "Nothing was begun. At most this many calls; failed ones are made again."
        return RunPlaybookOptimizationResponse(
            success=not found.obstacle,
            msg=found.obstacle or told,
            status="skipped" if found.obstacle else "pending",
            estimate=found.estimate,
        )

    async def look(self, store: Store, kind: TargetKind, target_id: int) -> Prospect:
        now = self.classroom.clock.now()

        def read(tx: Tx) -> tuple[Prospect, Config]:
            config = stored(tx)
            return prospect(tx, config, one(tx, named(kind, target_id)), now), config

        found, config = await store.read(read)
        return replace(found, obstacle=found.obstacle or await self.unable(config))

    async def unable(self, config: Config) -> str:
        """Why nobody can be asked; nothing when there is an assistant and a model."""
        try:
            assistant = self.assistant(config.playbook_optimizer_config)
            await assistant.aclose()
            return "" if self.critic(config) else NO_MODEL
        except (InvalidRequest, ProviderRefused) as error:
            return str(error)

    async def begin(
        self, store: Store, kind: TargetKind, target_id: int, started_by: StartedBy, *, seed: int | None = None
    ) -> PlaybookOptimizationJob:
        """The job that is under way for this playbook, else a new one; one that cannot run is skipped at once."""
        await self.classroom.work.ready()
        found, now = await self.look(store, kind, target_id), self.classroom.clock.now()
        made = PlaybookOptimizationJob(
            target_kind=kind,
            target_id=target_id,
            started_by=started_by,
            seed=secrets.randbelow(2**31) if seed is None else seed,
            incumbent_content=found.target.content,
            estimate=found.estimate,
            fingerprint=found.fingerprint,
            created_at=now,
            updated_at=now,
        )
        job = made.ended("skipped", found.obstacle, now) if found.obstacle else made

        def add(tx: Tx) -> PlaybookOptimizationJob:
            for known in tx.optimisations.of_target(kind, target_id, 1):
                if not known.has_ended:
                    return known
            tx.optimisations.trim(KEPT)
            return tx.optimisations.add(job)

        begun = await store.write(add)
        if not begun.has_ended:
            await self.enqueue(store, begun.job_id)
        return begun

    async def enqueue(self, store: Store, job_id: int) -> None:
        """Asked for once more, it is the same work."""
        which, lane = key(store.org_id, job_id), f"optimise/{crc32(store.org_id.encode()) % LANES}"
        data: Json = {"org_id": store.org_id, "job_id": job_id}
        await self.classroom.work.enqueue(WORKFLOW, which, data, lane=lane)
        if which not in self._watching:
            self._watching[which] = asyncio.create_task(self._see_through(store, job_id))
            self._watching[which].add_done_callback(lambda _: self._watching.pop(which, None))

    async def _see_through(self, store: Store, job_id: int) -> None:
        """Work that ended without a word of its own, as by a defect, has failed all the same."""
        try:
            work = await self.classroom.work.wait(key(store.org_id, job_id))
        except (StorageUnavailable, NotFound):
            return  # This process ends, and the work goes on in the next.
        if work.state == "done":
            return
        now, reason = self.classroom.clock.now(), work.error or work.state

        def fail(tx: Tx) -> None:
            job = get(tx, job_id)
            if not job.has_ended:
                tx.optimisations.put(job.ended("failed", reason, now))

        await store.write(fail)

    async def cancel(self, store: Store, job_id: int) -> tuple[PlaybookOptimizationJob, bool]:
        """The job, and whether there was something to stop. A call to the assistant or a model is still finished."""
        await self.classroom.work.ready()
        now = self.classroom.clock.now()

        def stop(tx: Tx) -> tuple[PlaybookOptimizationJob, bool]:
            job = get(tx, job_id)
            if job.has_ended:
                return job, False
            stopped = job.ended("skipped", CANCELLED, now)
            tx.optimisations.put(stopped)
            return stopped, True

        job, stopped = await store.write(stop)
        if stopped:
            await self.classroom.work.cancel(key(store.org_id, job_id))
        return job, stopped


def key(org_id: str, job_id: int) -> str:
    return f"optimise:{org_id}:{job_id}"


def get(tx: Tx, job_id: int) -> PlaybookOptimizationJob:
    job = tx.optimisations.get(job_id)
    if job is None:
        raise NotFound(what="optimisation job", id=job_id)
    return job
