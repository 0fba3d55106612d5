"""The durable workflow of one aggregation run: cluster each pool, then summarise and keep each changed cluster.

A run that somebody asks for takes all types of a version and clusters them from scratch; an automatic one takes the
pool that has enough new playbooks. Both wait in the same lane, so that no two change a pool at once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from reflexio.aggregation.pool import PoolClustering
from reflexio.aggregation.service import WORKFLOW, AggregationRun, aggregator_settings
from reflexio.aggregation.summarise import OPERATION, ClusterSummary
from reflexio.errors import ProviderError, ProviderRefused, ReflexioError
from reflexio.jobs import operations
from reflexio.jobs.operations import OperationRun
from reflexio.jobs.retry import LONGEST_BACKOFF, LONGEST_PROBE, Pause, backoff, with_retries
from reflexio.learning.stall import StallMonitor
from reflexio.learning.worker import LearnerSetup, SetupFor, setup_or_refusal
from reflexio.models.config import Config
from reflexio.organisations.configuration import stored_config
from reflexio.organisations.usage import is_within_budget
from reflexio.ports.clock import Clock
from reflexio.ports.storage import Database, Store, Tx
from reflexio.ports.work import Json, Steps, Work
from reflexio.retrieval.immediate import ImmediateEmbedder

SNAPSHOT = {"agent_context_prompt", "tool_can_use", "playbook_configs"}
"""The part of the configuration that a run keeps from its beginning. Secrets are read where they are used."""

PlaybooksAdded = Callable[[Store, Sequence[int]], Awaitable[None]]


@dataclass
class AggregationWorker:
    """Carries out aggregation runs. Each listener in `on_added` gets the ids of new agent playbooks."""

    database: Database
    clock: Clock
    setup_for: SetupFor
    stalls: StallMonitor
    pause: Pause = asyncio.sleep
    on_added: list[PlaybooksAdded] = field(default_factory=list)

    def register(self, work: Work) -> None:
        work.register(WORKFLOW, self._aggregate)

    async def _aggregate(self, steps: Steps, data: Json) -> Json:
        run = AggregationRun.read(data)
        store = self.database.of(run.org_id)
        operation = OperationRun(store, self.clock, run.operation_id, is_within_budget)

        async def postpone(error: ReflexioError) -> None:
            if isinstance(error, ProviderRefused):
                await self.stalls.provider_refused(store, error)
            longest = LONGEST_PROBE if isinstance(error, ProviderRefused) else LONGEST_BACKOFF
            await self._reschedule(store, run, is_failed=True, longest=longest)

        return await operation.run(lambda: self._run(steps, run, operation), postpone)

    async def _run(self, steps: Steps, run: AggregationRun, operation: OperationRun) -> bool:
        """All pools, then all changed clusters; False when somebody cancelled."""
        store = operation.store

        async def read_config() -> Json:
            return (await store.read(stored_config)).model_dump(mode="json", include=SNAPSHOT)

        config = Config.model_validate(await steps("configuration", read_config))
        setup = setup_or_refusal(self.setup_for, await store.read(stored_config))
        changed = await self._cluster_pools(steps, run, operation, config, setup)
        has_failed = False
        for name, number in changed:
            settings = aggregator_settings(config, name)
            cluster = ClusterSummary(run.agent_version, name, number, settings, config, store, setup)
            if not await operation.heartbeat(cluster.label):
                return False
            has_failed |= not await self._summarise(steps, operation, cluster)
        await self._reschedule(store, run, is_failed=has_failed)
        return True

    async def _cluster_pools(
        self, steps: Steps, run: AggregationRun, operation: OperationRun, config: Config, setup: LearnerSetup
    ) -> list[tuple[str, int]]:
        """The clusters that changed, by type and number."""
        store, changed = operation.store, list[tuple[str, int]]()
        stats = {"user_playbooks_processed": 0, "clusters_found": 0, "total_generated": 0}
        for name in run.names:
            pool = PoolClustering(run.agent_version, name, aggregator_settings(config, name), store, setup.embedder)

            async def cluster(pool: PoolClustering = pool) -> Json:
                return await pool.cluster(operation.heartbeat, from_scratch=not run.is_automatic)

            clustered = await steps(f"lay out {name}", cluster)  # the stored name of the step
            changed += [(name, number) for number in clustered["changed"]]
            stats["user_playbooks_processed"] += clustered["members"]
            stats["clusters_found"] += clustered["clusters"]
        now = self.clock.now()

        def report(tx: Tx) -> None:
            known = operations.get(tx, run.operation_id).stats
            # After a crash, what was generated before it still counts.
            stats["total_generated"] = known.get("total_generated", 0)
            operations.progress(tx, run.operation_id, now, total_users=len(changed), stats=stats)

        await store.write(report)
        return changed

    async def _summarise(self, steps: Steps, operation: OperationRun, cluster: ClusterSummary) -> bool:
        """One cluster. False when its learner failed, or a member was deleted meanwhile: then it is tried again."""
        store, label = operation.store, cluster.label
        retried = with_retries(steps, label, store, self.clock, OPERATION, self.pause)
        try:
            answer = await retried("write", cluster.write)
        except ProviderRefused:
            raise
        except ProviderError as error:
            await self._record_failure(operation, cluster, error)
            return False
        now = self.clock.now()
        # With its vector, so that the next search finds the playbook by meaning.
        vectors = await ImmediateEmbedder(cluster.setup.embedder).embed(cluster.texts(answer))

        def keep(tx: Tx) -> Json:
            kept = cluster.keep(tx, answer, vectors)
            stats = {"total_generated": len(kept["numbers"])}
            operations.record_user(tx, operation.operation_id, label, now, stats=stats)
            return kept

        kept = await steps(f"{label}/keep", lambda: store.write(keep))
        if kept["numbers"]:
            await steps(f"{label}/tell", lambda: self._notify(store, kept["numbers"]))
        if not answer.get("is_gone") and not answer.get("is_unasked"):
            await self.stalls.provider_works(store)
        return not kept["is_stale"]

    async def _notify(self, store: Store, playbook_ids: Sequence[int]) -> Json:
        for listener in self.on_added:
            await listener(store, playbook_ids)
        return {}

    async def _record_failure(self, operation: OperationRun, cluster: ClusterSummary, error: ProviderError) -> None:
        now, reason = self.clock.now(), str(error)

        def record(tx: Tx) -> None:
            operations.record_user(tx, operation.operation_id, cluster.label, now, error=reason)
            cluster.fail(tx, error)

        await operation.store.write(record)

    async def _reschedule(
        self, store: Store, run: AggregationRun, *, is_failed: bool, longest: int = LONGEST_BACKOFF
    ) -> None:
        """Schedules failed pools again after ever longer pauses, without waiting for new playbooks."""
        now = self.clock.now()

        def put(tx: Tx) -> None:
            for name in run.names:
                pool = tx.pools.get(run.agent_version, name)
                attempts = pool.attempts + 1 if is_failed else 0
                retry_at = now + backoff(attempts, longest) if attempts else 0
                tx.pools.put(replace(pool, attempts=attempts, retry_at=retry_at))

        await store.write(put)
