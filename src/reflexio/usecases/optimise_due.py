"""Optimisation by itself: the data says which playbooks nobody has tried to improve yet, and this looks now and then.

So a run after an aggregation and a run by schedule are the same: whoever writes agent playbooks only has to wake it,
and what a crash left undone is found at the next look.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field

from reflexio.errors import ReflexioError
from reflexio.learning.optimise.adopt import is_optimised
from reflexio.models.config import Config, PlaybookOptimizerConfig
from reflexio.models.learning import Kind, Learning
from reflexio.models.optimisation import PlaybookOptimizationJob, StartedBy, TargetKind
from reflexio.models.status import PlaybookStatus, Status
from reflexio.ports.storage import LearningFilter, Store, Tx
from reflexio.retrieval.walk import every
from reflexio.usecases.configure import stored
from reflexio.usecases.optimise import CANCELLED, Optimiser, fingerprint
from reflexio.usecases.spend import allowed

log = logging.getLogger("reflexio.optimise")

LOOK_EVERY = 600.0
"""Seconds between two looks, when nobody wakes it."""
KINDS: dict[Kind, TargetKind] = {Kind.AGENT_PLAYBOOK: "agent_playbook", Kind.USER_PLAYBOOK: "user_playbook"}


@dataclass
class Optimising:
    """Begins what is due, and takes up again what a crash interrupted."""

    optimiser: Optimiser
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _woken: asyncio.Event = field(default_factory=asyncio.Event)

    async def written(self, store: Store, numbers: Sequence[int]) -> None:
        """An aggregation has written these agent playbooks: look now."""
        self._woken.set()

    async def keep_optimising(self) -> None:
        """Until cancelled."""
        started_by: StartedBy = "schedule"
        while True:
            try:
                await self.begin_due(started_by)
            except ReflexioError as error:
                log.error("optimisation waits: %s", error)
            try:
                async with asyncio.timeout(LOOK_EVERY):
                    await self._woken.wait()
                started_by = "aggregation"
            except TimeoutError:
                started_by = "schedule"
            self._woken.clear()

    async def begin_due(self, started_by: StartedBy = "schedule") -> list[PlaybookOptimizationJob]:
        """Begins a job for every playbook that is due, in all organisations that want it."""
        begun = []
        for org_id in await self.optimiser.classroom.database.configured():
            store = self.optimiser.classroom.database.of(org_id)
            await self._resume(store)
            for target in await self._due(store):
                begun.append(await self.optimiser.begin(store, KINDS[target.kind], target.id, started_by))
        return begun

    async def _resume(self, store: Store) -> None:
        """Work that was asked for and never arrived is asked for again."""
        for job in await store.read(lambda tx: tx.optimisations.unfinished()):
            await self.optimiser.enqueue(store, job.job_id)

    async def _due(self, store: Store) -> list[Learning]:
        now = self.optimiser.classroom.clock.now()

        def look(tx: Tx) -> tuple[list[Learning], Config]:
            config = stored(tx)
            settings = config.playbook_optimizer_config
            if not settings.enabled or tx.stalls.get() or not allowed(tx, config, now):
                return [], config
            return [each for each in _targets(tx, settings) if _is_due(tx, settings, each, now)], config

        due, config = await store.read(look)
        if due and (reason := await self.optimiser.unable(config)):
            # Not their fault: they are begun as soon as somebody can be asked.
            log.warning("%d playbook(s) of %s wait to be optimised: %s", len(due), store.org_id, reason)
            return []
        if due:
            # Servers that share an assistant do not all call it in the same second.
            await self.sleep(random.uniform(0, config.playbook_optimizer_config.scheduler_jitter_seconds))
        return due


def _targets(tx: Tx, settings: PlaybookOptimizerConfig) -> Iterator[Learning]:
    """What may be optimised without being asked: not what an optimisation has written itself."""
    wanted = []
    if settings.optimize_agent_playbooks and settings.auto_update_pending_agent_playbooks:
        wanted.append(LearningFilter(Kind.AGENT_PLAYBOOK, reviews=(PlaybookStatus.PENDING,)))
    if settings.optimize_user_playbooks and settings.auto_update_user_playbooks:
        wanted.append(LearningFilter(Kind.USER_PLAYBOOK, statuses=(Status.CURRENT,)))
    for where in wanted:
        yield from (each for each in every(tx, where) if not is_optimised(each) and _has_windows(each))


def _has_windows(target: Learning) -> bool:
    return bool(target.details.get("source_windows") or target.details.get("source_interaction_ids"))


def _is_due(tx: Tx, settings: PlaybookOptimizerConfig, target: Learning, now: int) -> bool:
    """Not while a job is under way, nor again with nothing changed; after failures a while later."""
    jobs = tx.optimisations.of_target(KINDS[target.kind], target.id, settings.abort_cooldown_threshold)
    if not jobs:
        return True
    last = jobs[0]
    if not last.has_ended:
        return False
    if last.status == "failed":
        cooling = len(jobs) == settings.abort_cooldown_threshold and all(each.status == "failed" for each in jobs)
        return not cooling or now - (last.completed_at or 0) >= settings.cooldown_after_aborts_seconds
    return _has_changed(last, fingerprint(target, settings))


def _has_changed(last: PlaybookOptimizationJob, fingerprint_now: str) -> bool:
    (was, windows), (now_is, windows_now) = last.fingerprint.split("/"), fingerprint_now.split("/")
    if was != now_is:
        return True
    if last.status != "skipped" or last.decision_reason == CANCELLED:
        # What was searched in vain would only be searched again, and what somebody stopped stays stopped.
        return False
    # With other windows it may be possible; and who asked by hand may have met an obstacle that is gone.
    return windows != windows_now or last.started_by == "hand"
