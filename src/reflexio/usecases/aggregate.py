"""Aggregate: what many users taught becomes agent playbooks, which wait for a person to approve them.

One durable workflow a run: a step lays out each pool, then each cluster that changed is written and kept. A run that
somebody asks for takes all types of a version and groups them anew; one that begins by itself (`usecases.gather`)
takes the pool in which enough is new. Both wait in the same lane, so that no two touch a pool at once.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from uuid import uuid4

from reflexio.errors import Conflict, ProviderError, ProviderRefused, ReflexioError
from reflexio.learning.gather import Gathering
from reflexio.learning.generalise import OPERATION, Writing
from reflexio.learning.window import LONGEST_BACKOFF
from reflexio.learning.workflow import BACKOFF, LONGEST_PROBE, School
from reflexio.models.config import Config, PlaybookAggregatorConfig
from reflexio.models.operation import Operation
from reflexio.ports.storage import Store, Tx
from reflexio.ports.work import Json, Steps
from reflexio.usecases import operations
from reflexio.usecases.configure import stored
from reflexio.usecases.learn import Classroom
from reflexio.usecases.patience import Pause, patient
from reflexio.usecases.rerun import BUDGET
from reflexio.usecases.spend import allowed

log = logging.getLogger("reflexio.aggregate")

WORKFLOW = "aggregate"
SERVICE, AUTOMATIC = "playbook_aggregation", "automatic_playbook_aggregation"
SNAPSHOT = {"agent_context_prompt", "tool_can_use", "playbook_configs"}
"""What of the configuration a run keeps to from its beginning. Keys are read where they are used, never kept twice."""

Choose = Callable[[list[str]], str | None]
"""The type that is meant, of all that are there or configured; None is all."""
Written = Callable[[Store, Sequence[int]], Awaitable[None]]


@dataclass(frozen=True)
class Run:
    """What is aggregated, and the operation that tells how far it is."""

    operation_id: str
    org_id: str
    agent_version: str
    names: tuple[str, ...]
    is_automatic: bool = False

    @property
    def key(self) -> str:
        return f"aggregate:{self.org_id}:{self.operation_id}"

    @classmethod
    def read(cls, data: Json) -> "Run":
        return cls(**{**data, "names": tuple(data["names"])})


def settings_of(config: Config, name: str) -> PlaybookAggregatorConfig:
    """Those of the type; the usual ones for a type that is not configured."""
    found = next((each for each in config.playbook_configs if each.playbook_name == name), None)
    return found.playbook_aggregator_config if found else PlaybookAggregatorConfig()


def begin(tx: Tx, agent_version: str, choose: Choose, params: Json, now: int) -> Run:
    """A run over one type or all. Raises Conflict while another one is in progress or the budget is used up."""
    config = stored(tx)
    if not allowed(tx, config, now):
        raise Conflict(BUDGET)
    there = tx.pools.names(agent_version)
    chosen = choose([*there, *(each.playbook_name for each in config.playbook_configs)])
    names = there if chosen is None else [chosen]
    made = operations.begin(tx, SERVICE, str(uuid4()), params, now)
    return Run(made.id, "", agent_version, tuple(names))


@dataclass
class Aggregations:
    """Begins runs and does their work. Whoever stands in `written` is told the numbers of new agent playbooks."""

    classroom: Classroom
    pause: Pause = asyncio.sleep
    written: list[Written] = field(default_factory=list)
    _watching: set["asyncio.Task[None]"] = field(default_factory=set)

    def register(self) -> None:
        self.classroom.work.register(WORKFLOW, self._aggregate)

    async def begin(self, store: Store, agent_version: str, choose: Choose, params: Json) -> Run:
        """Begins a run that somebody asks for. Raises what `begin` raises."""
        await self.classroom.work.ready()
        now = self.classroom.clock.now()
        made = await store.write(lambda tx: begin(tx, agent_version, choose, params, now))
        return await self.enqueue(store, replace(made, org_id=store.org_id))

    async def enqueue(self, store: Store, run: Run) -> Run:
        work = self.classroom.work
        await work.enqueue(WORKFLOW, run.key, asdict(run), lane=f"aggregate:{run.org_id}")
        watch = asyncio.create_task(
            operations.see_through(work, store, self.classroom.clock, run.key, run.operation_id)
        )
        self._watching.add(watch)
        watch.add_done_callback(self._watching.discard)
        return run

    async def wait(self, store: Store, run: Run, seconds: float | None = None) -> Operation:
        """The operation at its end, or after so many seconds."""
        ended = asyncio.ensure_future(self.classroom.work.wait(run.key))
        await asyncio.wait({ended}, timeout=seconds)
        if ended.done():
            ended.result()
        ended.cancel()
        return await store.read(lambda tx: operations.get(tx, run.operation_id))

    async def _aggregate(self, steps: Steps, data: Json) -> Json:
        run = Run.read(data)
        store = self.classroom.database.of(run.org_id)
        try:
            complete = await self._run(steps, run, store)
        except Conflict as ended:
            # It was taken for dead, and perhaps another one has begun: what is left is not ours any more.
            log.warning("an aggregation stops: %s", ended)
            return {"complete": False}
        except ReflexioError as error:
            why = str(error)
            if is_refused := isinstance(error, ProviderRefused):
                await self.classroom.refused(store, error)
            await self._postpone(store, run, is_failed=True, longest=LONGEST_PROBE if is_refused else LONGEST_BACKOFF)
            await self._end(store, lambda tx, now: operations.fail(tx, run.operation_id, why, now))
            return {"complete": False}
        end = operations.finish if complete else operations.stop
        await self._end(store, lambda tx, now: end(tx, run.operation_id, now))
        return {"complete": complete}

    async def _end(self, store: Store, end: Callable[[Tx, int], Operation]) -> None:
        now = self.classroom.clock.now()
        await store.write(lambda tx: end(tx, now))

    async def _run(self, steps: Steps, run: Run, store: Store) -> bool:
        """All pools, then all changed clusters; False when somebody asked to stop."""
        config = await self._config(steps, store)
        school = self.classroom.taught_by(await store.read(stored))
        changes = await self._lay_out(steps, run, store, config, school)
        failed = False
        for name, number in changes:
            writing = Writing(
                run.agent_version, name, number, settings_of(config, name).min_cluster_size, config, store, school
            )
            if not await self._goes_on(run, store, _label(name, number)):
                return False
            failed |= not await self._one(steps, run, writing)
        await self._postpone(store, run, is_failed=failed)
        return True

    async def _config(self, steps: Steps, store: Store) -> Config:
        async def look() -> Json:
            return (await store.read(stored)).model_dump(mode="json", include=SNAPSHOT)

        return Config.model_validate(await steps("configuration", look))

    async def _lay_out(
        self, steps: Steps, run: Run, store: Store, config: Config, school: School
    ) -> list[tuple[str, int]]:
        async def alive() -> None:
            await self._goes_on(run, store)

        changes: list[tuple[str, int]] = []
        stats = {"user_playbooks_processed": 0, "clusters_found": 0, "total_generated": 0}
        for name in run.names:
            pool = Gathering(run.agent_version, name, settings_of(config, name), store, school.embedder)

            async def laid_out(pool: Gathering = pool) -> Json:
                return await pool.lay_out(alive, anew=not run.is_automatic)

            found = await steps(f"lay out {name}", laid_out)
            changes += [(name, each) for each in found["changed"]]
            stats["user_playbooks_processed"] += found["members"]
            stats["clusters_found"] += found["clusters"]
        now = self.classroom.clock.now()

        def tell(tx: Tx) -> None:
            known = operations.get(tx, run.operation_id).stats
            # After a crash, what was generated before it is not forgotten.
            told = {**stats, "total_generated": known.get("total_generated", 0)}
            operations.progress(tx, run.operation_id, now, total_users=len(changes), stats=told)

        await store.write(tell)
        return changes

    async def _one(self, steps: Steps, run: Run, writing: Writing) -> bool:
        """One cluster. False when its learner failed, or a member left meanwhile: then it is tried again."""
        store, label = writing.store, _label(writing.name, writing.number)
        careful = patient(steps, label, store, self.classroom.clock, OPERATION, self.pause)
        try:
            answer = await careful("write", writing.write)
        except ProviderRefused:
            raise
        except ProviderError as error:
            await self._failed(store, run, writing, error)
            return False
        now = self.classroom.clock.now()

        def keep(tx: Tx) -> Json:
            made = writing.keep(tx, answer)
            operations.done(tx, run.operation_id, label, now, stats={"total_generated": len(made["numbers"])})
            return made

        made = await steps(f"{label}/keep", lambda: store.write(keep))
        if made["numbers"]:
            await steps(f"{label}/tell", lambda: self._tell(store, made["numbers"]))
        if not answer.get("is_gone") and not answer.get("is_unasked"):
            await self.classroom.resume(store)
        return not made["is_stale"]

    async def _tell(self, store: Store, numbers: Sequence[int]) -> Json:
        for tell in self.written:
            await tell(store, numbers)
        return {}

    async def _failed(self, store: Store, run: Run, writing: Writing, error: ProviderError) -> None:
        now, why = self.classroom.clock.now(), str(error)

        def note(tx: Tx) -> None:
            operations.done(tx, run.operation_id, _label(writing.name, writing.number), now, error=why)
            writing.fail(tx, error)

        await store.write(note)

    async def _postpone(self, store: Store, run: Run, *, is_failed: bool, longest: int = LONGEST_BACKOFF) -> None:
        """What failed is tried again after ever longer pauses, without waiting for more to be learned."""
        now = self.classroom.clock.now()

        def put(tx: Tx) -> None:
            for name in run.names:
                pool = tx.pools.get(run.agent_version, name)
                attempts = pool.attempts + 1 if is_failed else 0
                wait = min(longest, BACKOFF * 2 ** min(attempts, 10))
                tx.pools.put(replace(pool, attempts=attempts, retry_at=now + wait if attempts else 0))

        await store.write(put)

    async def _goes_on(self, run: Run, store: Store, label: str = "") -> bool:
        now = self.classroom.clock.now()

        def look(tx: Tx) -> bool:
            if not allowed(tx, stored(tx), now):
                raise ReflexioError.told(BUDGET)
            operation = operations.progress(tx, run.operation_id, now, current_user_id=label)
            return not operation.cancel_requested

        return await store.write(look)


def _label(name: str, number: int) -> str:
    """How an operation names a cluster, where it would name a user."""
    return f"{name}#{number}"
