"""The verbs of aggregation: begin a run, enqueue it and wait for it."""

import asyncio
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from uuid import uuid4

from reflexio.errors import Conflict
from reflexio.jobs import operations
from reflexio.jobs.background import BackgroundTasks
from reflexio.jobs.token_budget import USED_UP, allowed
from reflexio.models.config import Config, PlaybookAggregatorConfig
from reflexio.models.operation import Operation
from reflexio.organisations.configuration import stored_config
from reflexio.ports.clock import Clock
from reflexio.ports.storage import Store, Tx
from reflexio.ports.work import Json, Work

WORKFLOW = "aggregate"
SERVICE, AUTOMATIC_SERVICE = "playbook_aggregation", "automatic_playbook_aggregation"

ChooseType = Callable[[list[str]], str | None]
"""Picks the playbook type that is meant, of all that exist or are configured; None means all."""


@dataclass(frozen=True)
class AggregationRun:
    """What is aggregated, and the operation that reports its progress."""

    operation_id: str
    org_id: str
    agent_version: str
    names: tuple[str, ...]
    is_automatic: bool = False

    @property
    def key(self) -> str:
        return f"aggregate:{self.org_id}:{self.operation_id}"

    @classmethod
    def read(cls, data: Json) -> "AggregationRun":
        return cls(**{**data, "names": tuple(data["names"])})


def aggregator_settings(config: Config, name: str) -> PlaybookAggregatorConfig:
    """The settings of a playbook type; the defaults for one that is not configured."""
    types = {playbook.playbook_name: playbook.playbook_aggregator_config for playbook in config.playbook_configs}
    return types.get(name) or PlaybookAggregatorConfig()


def begin_run(tx: Tx, agent_version: str, choose_type: ChooseType, params: Json, now: int) -> AggregationRun:
    """A run over one type or all. Raises Conflict while another one is in progress or the budget is used up."""
    config = stored_config(tx)
    if not allowed(tx, config, now):
        raise Conflict(USED_UP)
    existing = tx.pools.names(agent_version)
    chosen = choose_type([*existing, *(playbook.playbook_name for playbook in config.playbook_configs)])
    operation = operations.begin(tx, SERVICE, str(uuid4()), params, now)
    return AggregationRun(operation.id, "", agent_version, tuple(existing if chosen is None else [chosen]))


@dataclass
class AggregationService:
    """Aggregation that somebody asks for, or that the scheduler starts. Runs of an organisation share one lane."""

    work: Work
    clock: Clock
    tasks: BackgroundTasks = field(default_factory=BackgroundTasks)

    async def begin(self, store: Store, agent_version: str, choose_type: ChooseType, params: Json) -> AggregationRun:
        """Begins a run that somebody asks for. Raises what `begin_run` raises."""
        await self.work.ready()
        now = self.clock.now()
        run = await store.write(lambda tx: begin_run(tx, agent_version, choose_type, params, now))
        return await self.enqueue(store, replace(run, org_id=store.org_id))

    async def enqueue(self, store: Store, run: AggregationRun) -> AggregationRun:
        await self.work.enqueue(WORKFLOW, run.key, asdict(run), lane=f"aggregate:{run.org_id}")
        self.tasks.start(operations.fail_with_job(self.work, store, self.clock, run.key, run.operation_id))
        return run

    async def wait(self, store: Store, run: AggregationRun, seconds: float | None = None) -> Operation:
        """The operation at its end, or after so many seconds."""
        ended = asyncio.ensure_future(self.work.wait(run.key))
        await asyncio.wait({ended}, timeout=seconds)
        if ended.done():
            ended.result()
        ended.cancel()
        return await store.read(lambda tx: operations.get(tx, run.operation_id))
