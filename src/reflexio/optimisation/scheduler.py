"""Decides which playbooks are due for optimisation, and starts their jobs automatically.

The data says what is due, so a job after an aggregation and a job by schedule are the same: an aggregation only wakes
the scheduler, and what a crash left undone is found at the next look.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from reflexio.errors import ReflexioError
from reflexio.jobs.token_budget import allowed
from reflexio.models.config import Config, PlaybookOptimizerConfig
from reflexio.models.learning import Kind, Learning, PlaybookStatus
from reflexio.models.optimisation import PlaybookOptimizationJob, StartedBy, TargetKind
from reflexio.optimisation.adopt import is_optimised
from reflexio.optimisation.service import CANCELLED, SWITCHES, OptimisationBackends, OptimisationService, fingerprint
from reflexio.organisations.configuration import stored_config
from reflexio.ports.clock import Clock
from reflexio.ports.storage import Database, LearningFilter, Store, Tx
from reflexio.retrieval.filters import all_pages

log = logging.getLogger("reflexio.optimise")

INTERVAL = 600.0
"""Seconds between two looks, unless an aggregation wakes the scheduler."""
KINDS: dict[Kind, TargetKind] = {Kind.AGENT_PLAYBOOK: "agent_playbook", Kind.USER_PLAYBOOK: "user_playbook"}


@dataclass
class OptimisationScheduler:
    """Starts jobs that are due, and resumes jobs that a crash interrupted."""

    database: Database
    clock: Clock
    service: OptimisationService
    backends: OptimisationBackends
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _woken: asyncio.Event = field(default_factory=asyncio.Event)

    async def on_aggregated(self, store: Store, playbook_ids: Sequence[int]) -> None:
        """An aggregation wrote agent playbooks: look now."""
        self._woken.set()

    async def run(self) -> None:
        """Runs until cancelled."""
        started_by: StartedBy = "schedule"
        while True:
            try:
                await self.start_due(started_by)
            except ReflexioError as error:
                log.error("optimisation waits: %s", error)
            started_by = "schedule"
            with suppress(TimeoutError):
                async with asyncio.timeout(INTERVAL):
                    await self._woken.wait()
                started_by = "aggregation"
            self._woken.clear()

    async def start_due(self, started_by: StartedBy = "schedule") -> list[PlaybookOptimizationJob]:
        """Starts a job for every due playbook of every organisation."""
        jobs = []
        for org_id in await self.database.configured():
            store = self.database.of(org_id)
            # A job whose work never reached the engine, or got lost there, is enqueued again.
            for job in await store.read(lambda tx: tx.optimisations.unfinished()):
                await self.service.enqueue(store, job.job_id)
            for target in await self._due(store):
                jobs.append(await self.service.start(store, KINDS[target.kind], target.id, started_by))
        return jobs

    async def _due(self, store: Store) -> list[Learning]:
        now = self.clock.now()

        def look(tx: Tx) -> tuple[list[Learning], Config]:
            config = stored_config(tx)
            settings = config.playbook_optimizer_config
            if not settings.enabled or tx.stalls.get() or not allowed(tx, config, now):
                return [], config
            return [target for target in _targets(tx, settings) if is_due(tx, settings, target, now)], config

        due, config = await store.read(look)
        if due and (obstacle := await self.backends.obstacle(config)):
            # Not skipped, as the playbooks are not at fault: they start as soon as the obstacle is gone.
            log.warning("%d playbook(s) of %s wait to be optimised: %s", len(due), store.org_id, obstacle)
            return []
        if due:
            # Servers that share an assistant should not all call it in the same second.
            await self.sleep(random.uniform(0, config.playbook_optimizer_config.scheduler_jitter_seconds))
        return due


def _targets(tx: Tx, settings: PlaybookOptimizerConfig) -> Iterator[Learning]:
    """Playbooks with source windows that may be optimised automatically; results of an optimisation may not."""
    for kind, switches in SWITCHES.items():
        if not all(getattr(settings, switch) for switch in switches):
            continue
        reviews = (PlaybookStatus.PENDING,) if kind is Kind.AGENT_PLAYBOOK else None
        for playbook in all_pages(tx, LearningFilter(kind, reviews=reviews)):
            windows = playbook.details.get("source_windows") or playbook.details.get("source_interaction_ids")
            if windows and not is_optimised(playbook):
                yield playbook


def is_due(tx: Tx, settings: PlaybookOptimizerConfig, target: Learning, now: int) -> bool:
    """Not while a job is unfinished, nor again with nothing changed; after repeated failures only after a pause."""
    jobs = tx.optimisations.of_target(KINDS[target.kind], target.id, settings.abort_cooldown_threshold)
    if not jobs:
        return True
    last = jobs[0]
    if not last.has_ended:
        return False
    if last.status == "failed":
        is_paused = len(jobs) == settings.abort_cooldown_threshold and all(job.status == "failed" for job in jobs)
        return not is_paused or now - (last.completed_at or 0) >= settings.cooldown_after_aborts_seconds
    old_hash, old_windows = last.fingerprint.split("/")
    new_hash, new_windows = fingerprint(target, settings).split("/")
    if old_hash != new_hash:
        return True
    if last.status != "skipped" or last.decision_reason == CANCELLED:
        # The same search would find nothing again, and a cancelled job stays cancelled.
        return False
    # Other windows may suffice; and an obstacle that a request by hand met may be gone.
    return old_windows != new_windows or last.started_by == "hand"
