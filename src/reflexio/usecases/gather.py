"""Gather: aggregation that begins by itself, when enough was learned.

The database says which pools have news. A pool is given a moment: what many users teach at the same time is one run.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from uuid import uuid4

from reflexio.errors import Conflict, ReflexioError
from reflexio.ports.storage import Pool, Tx
from reflexio.usecases import operations
from reflexio.usecases.aggregate import AUTOMATIC, Aggregations, Run, settings_of
from reflexio.usecases.configure import stored
from reflexio.usecases.spend import allowed

log = logging.getLogger("reflexio.aggregate")

IDLE = 0.5
"""Seconds between looks at the pools."""
QUIET, LONGEST = 3, 60
"""Seconds after the last news, or the first, until a pool is gathered."""
MOST_POOLS = 500


@dataclass
class Gatherer:
    """Begins a run for each pool that is due, one at a time in an organisation."""

    aggregations: Aggregations
    _busy: set[str] = field(default_factory=set)
    _after: Pool | None = None
    _watching: set["asyncio.Task[None]"] = field(default_factory=set)

    async def keep_gathering(self, lull: Callable[[], Awaitable[bool]]) -> None:
        """Until cancelled."""
        while True:
            try:
                await lull()
                await self.gather_due()
            except ReflexioError as error:
                log.error("aggregation waits: %s", error)
            await asyncio.sleep(IDLE)

    async def gather_due(self) -> int:
        """Begins what is due; tells how many."""
        # Page after page, round and round: pools that wait for long without being due hide none.
        page = await self.aggregations.classroom.database.pools(MOST_POOLS, after=self._after)
        self._after = page[-1] if len(page) == MOST_POOLS else None
        begun = 0
        for pool in page:
            if pool.org_id not in self._busy:
                begun += await self._begin(pool)
        return begun

    async def _begin(self, pool: Pool) -> int:
        classroom = self.aggregations.classroom
        store, now = classroom.database.of(pool.org_id), classroom.clock.now()
        if not await store.read(lambda tx: is_due(tx, pool, now)):
            return 0
        params = {"agent_version": pool.agent_version, "playbook_name": pool.name}
        try:
            made = await store.write(lambda tx: operations.begin(tx, AUTOMATIC, str(uuid4()), params, now))
        except Conflict:
            return 0  # One that a crash interrupted goes on first.
        self._busy.add(pool.org_id)
        run = Run(made.id, pool.org_id, pool.agent_version, (pool.name,), is_automatic=True)
        watch = asyncio.create_task(self._see_through(run))
        self._watching.add(watch)
        watch.add_done_callback(self._watching.discard)
        return 1

    async def _see_through(self, run: Run) -> None:
        store = self.aggregations.classroom.database.of(run.org_id)
        try:
            await self.aggregations.wait(store, await self.aggregations.enqueue(store, run))
        except ReflexioError as error:
            log.info("an aggregation of %s waits: %s", run.org_id, error)
        finally:
            self._busy.discard(run.org_id)


def is_due(tx: Tx, pool: Pool, now: int) -> bool:
    """Whether enough is new and it has been quiet for a moment, or something that failed may be tried again.

    While a provider refuses, only what was refused asks it again.
    """
    config = stored(tx)
    if not allowed(tx, config, now) or (tx.stalls.get() and not pool.retry_at):
        return False
    if pool.retry_at:
        return pool.retry_at <= now
    enough = pool.fresh >= settings_of(config, pool.name).reaggregation_trigger_count
    # Either way: a clock that was set back must not hold up anything for as long.
    return enough and (abs(now - pool.signalled_at) >= QUIET or abs(now - pool.fresh_since) >= LONGEST)
