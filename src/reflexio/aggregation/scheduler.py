"""Starts aggregation automatically when enough was learned.

The database knows which pools have new playbooks. A pool is left for a moment, so that what many users teach at the
same time is one run.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from uuid import uuid4

from reflexio.aggregation.service import AUTOMATIC_SERVICE, AggregationRun, AggregationService, aggregator_settings
from reflexio.errors import Conflict, ReflexioError
from reflexio.jobs import operations
from reflexio.jobs.background import BackgroundTasks
from reflexio.jobs.retry import is_pausing
from reflexio.jobs.token_budget import allowed
from reflexio.organisations.configuration import stored_config
from reflexio.ports.clock import Clock
from reflexio.ports.storage import Database, Pool, Tx

log = logging.getLogger("reflexio.aggregate")

POLL_SECONDS = 0.5
QUIET_SECONDS, LONGEST_WAIT = 3, 60
"""Seconds after the last new playbook, or the first, until a pool is aggregated."""
PAGE_SIZE = 500


@dataclass
class AggregationScheduler:
    """Starts a run for each pool that is due, one at a time in an organisation."""

    database: Database
    clock: Clock
    service: AggregationService
    tasks: BackgroundTasks = field(default_factory=BackgroundTasks)
    _running_orgs: set[str] = field(default_factory=set)
    _page_end: Pool | None = None

    async def run(self, wait_for_quiet: Callable[[], Awaitable[bool]]) -> None:
        """Runs until cancelled."""
        while True:
            try:
                await wait_for_quiet()
                await self.start_due()
            except ReflexioError as error:
                log.error("aggregation waits: %s", error)
            await asyncio.sleep(POLL_SECONDS)

    async def start_due(self) -> int:
        """Starts what is due; returns how many runs."""
        # Page after page, in a cycle: pools that wait for long without being due hide none.
        page = await self.database.pools(PAGE_SIZE, after=self._page_end)
        self._page_end = page[-1] if len(page) == PAGE_SIZE else None
        started = 0
        for pool in page:
            if pool.org_id not in self._running_orgs:
                started += await self._start(pool)
        return started

    async def _start(self, pool: Pool) -> int:
        store, now = self.database.of(pool.org_id), self.clock.now()
        if not await store.read(lambda tx: is_due(tx, pool, now)):
            return 0
        params = {"agent_version": pool.agent_version, "playbook_name": pool.name}
        try:
            operation = await store.write(lambda tx: operations.begin(tx, AUTOMATIC_SERVICE, str(uuid4()), params, now))
        except Conflict:
            return 0  # A run that a crash interrupted continues first.
        self._running_orgs.add(pool.org_id)
        run = AggregationRun(operation.id, pool.org_id, pool.agent_version, (pool.name,), is_automatic=True)
        self.tasks.start(self._watch(run))
        return 1

    async def _watch(self, run: AggregationRun) -> None:
        store = self.database.of(run.org_id)
        try:
            await self.service.wait(store, await self.service.enqueue(store, run))
        except ReflexioError as error:
            log.info("an aggregation of %s waits: %s", run.org_id, error)
        finally:
            self._running_orgs.discard(run.org_id)


def is_due(tx: Tx, pool: Pool, now: int) -> bool:
    """Whether enough is new and the pool was quiet for a moment, or a failed run may be tried again.

    While a provider refuses, only what was refused asks it again.
    """
    config = stored_config(tx)
    if not allowed(tx, config, now) or (tx.stalls.get() and not pool.retry_at):
        return False
    if pool.retry_at:
        return not is_pausing(pool.retry_at, now)
    has_enough = pool.fresh >= aggregator_settings(config, pool.name).reaggregation_trigger_count
    # The absolute difference: a clock that was set back must not hold up anything for as long.
    is_quiet = abs(now - pool.signalled_at) >= QUIET_SECONDS
    return has_enough and (is_quiet or abs(now - pool.fresh_since) >= LONGEST_WAIT)
