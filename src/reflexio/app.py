"""The composition root: Settings in, a running Reflexio out. The only module that names backends."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from uuid import uuid4

from reflexio.aggregation.scheduler import AggregationScheduler
from reflexio.aggregation.service import AggregationService
from reflexio.aggregation.withdraw import withdraw_user
from reflexio.aggregation.worker import AggregationWorker
from reflexio.engine.job_runner import DurableWork
from reflexio.engine.leadership import FileLeadership, LeaseLeadership
from reflexio.errors import InvalidRequest, ReflexioError
from reflexio.interactions.erase import WithdrawUser, finish_erasures
from reflexio.jobs.background import BackgroundTasks, Traffic, restart_on_error
from reflexio.jobs.token_budget import day_of
from reflexio.jobs.work_status import REFRESH_SECONDS, WorkStatus
from reflexio.learning.rerun import RerunWorker
from reflexio.learning.scheduler import LearningScheduler
from reflexio.learning.service import LearningService
from reflexio.learning.stall import StallMonitor
from reflexio.learning.worker import LearnerSetup, LearningWorker, SetupFor
from reflexio.model_choice import ChatModels, check_models, model_name, model_problems
from reflexio.models.config import Config, PlaybookOptimizerConfig
from reflexio.models.loopback import is_loopback
from reflexio.optimisation.scheduler import OptimisationScheduler
from reflexio.optimisation.service import OptimisationBackends, OptimisationService
from reflexio.optimisation.worker import OptimisationWorker
from reflexio.organisations.configuration import stored_config
from reflexio.organisations.keys import any_exists
from reflexio.ports.assistant import Assistant
from reflexio.ports.clock import Clock, SystemClock
from reflexio.ports.embedding import Embedder
from reflexio.ports.learner import Critic, Learner
from reflexio.ports.storage import Database
from reflexio.ports.work import Leadership, Work
from reflexio.providers.outgoing import OutgoingAddresses
from reflexio.retrieval.embedding_backlog import keep_embedding, keep_indexing
from reflexio.retrieval.immediate import ImmediateEmbedder
from reflexio.retrieval.index_status import IndexStatus
from reflexio.retrieval.query import QueryEmbedder
from reflexio.retrieval.scope import ScopeClassifier
from reflexio.settings import Settings

DATABASE, LOCK = "reflexio.db", "work.lock"
RECEIPTS_KEPT, JOBS_KEPT, EXPIRED_KEPT, WINDOWS_KEPT = 7 * 86_400, 86_400, 30 * 86_400, 86_400
NAME_FOLDER = "Its operator can name a folder of scripts in REFLEXIO_SCRIPTS, or use webhook_url instead."
HOUR, STATUS_SECONDS = 3600.0, 1.0
WORKER_SECONDS, WORKER_LOOKS = 10.0, 50
"""How long callers who wait for learning wait for a worker."""
WIPE_PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Seconds between the wipes of the disk after an erasure."""
LEARNED_KEPT, SPEND_DAYS_KEPT = 30 * 86_400, 400
ERASURE_LEFT_SECONDS, ORGANISATIONS_AT_ONCE = 60, 100


@dataclass
class Reflexio:
    """All parts, connected."""

    settings: Settings
    database: Database
    clock: Clock
    query_embedder: QueryEmbedder
    immediate_embedder: ImmediateEmbedder
    scopes: ScopeClassifier
    work: Work
    setup_for: SetupFor
    learning: LearningService
    learning_scheduler: LearningScheduler
    reruns: RerunWorker
    aggregation: AggregationService
    aggregation_scheduler: AggregationScheduler
    optimisation: OptimisationService
    optimisation_scheduler: OptimisationScheduler
    index_status: IndexStatus
    leadership: Leadership
    withdraw_user: WithdrawUser = withdraw_user
    traffic: Traffic = field(default_factory=Traffic)
    work_status: WorkStatus = field(default_factory=WorkStatus)
    _tasks: BackgroundTasks = field(default_factory=BackgroundTasks)
    _vectors_seen: int = 0
    """The newest vector of an hour ago."""
    _wipes_left: list[float] = field(default_factory=list)
    _is_wiping: bool = False

    @property
    def embedder(self) -> Embedder:
        return self.query_embedder.embedder

    def check_config(self, before: Config, after: Config) -> None:
        """Raises InvalidRequest for a change after which a model cannot be used. Calls nobody."""
        check_models(self.settings, before, after)

    async def model_problems(self, org_id: str) -> list[str]:
        """Why the models of an organisation cannot be used, as far as that is known without calling them."""
        return model_problems(self.settings, await self.database.of(org_id).read(stored_config))

    @property
    def embedder_runtime(self) -> str:
        """What computes the local embedder's vectors: "onnxruntime" or "numpy". Empty for an endpoint."""
        return str(getattr(self.embedder, "runtime", ""))

    async def forget_texts(self) -> None:
        """Drops deleted texts from the embedder's caches and from disk, after the erasure of a user."""
        forget = getattr(self.embedder, "forget", None)
        if forget is not None:
            forget()
        self._wipes_left = list(WIPE_PAUSES)
        if not self._is_wiping:
            self._is_wiping = True
            self._tasks.start(self._wipe_again())
        await self.database.wipe()

    async def _wipe_again(self) -> None:
        """Readers may hold the log of the database, and a job that was planned before the erasure may still write a
        last time: disk is wiped a few times more."""
        try:
            while self._wipes_left:
                await asyncio.sleep(self._wipes_left.pop(0))
                with suppress(ReflexioError):  # a full disk, say: the next attempt may succeed
                    if not await self.database.wipe():
                        self._wipes_left.insert(0, WIPE_PAUSES[0])
        finally:
            self._is_wiping = False

    def start_serving(self) -> None:
        """Starts what a server does beside its callers: little, so that it never holds them up."""
        self._tasks.start(restart_on_error(self._warm))
        self.watch()

    def watch(self) -> None:
        """Starts what keeps the numbers for health checks and metrics."""
        for work in (self._watch_backlog, self._watch_work):
            self._tasks.start(restart_on_error(work))

    async def work_until_cancelled(self) -> None:
        """Runs jobs, and the schedules as long as this process leads: learning, indexing, aggregation, tidying."""
        await self._load_learner()
        if not self.is_shared:
            await self.leadership.acquire()
        await self.work.start()
        upkeep = (self._tidy_hourly, self._finish_erasures, self._index, self._embed)
        schedules = (*upkeep, self._learn, self._aggregate, self._optimise)
        while True:
            await self.leadership.acquire()
            tasks = BackgroundTasks()
            for schedule in schedules:
                tasks.start(restart_on_error(schedule))
            self.work_status.is_leader = True
            try:
                await self.leadership.lost()
            finally:
                self.work_status.is_leader = False
                await tasks.cancel_all()

    @property
    def is_shared(self) -> bool:
        """Whether several workers may run jobs on this database at the same time."""
        return self.database.type == "postgresql"

    async def _warm(self) -> None:
        await self.database.warm(self.embedder.name)

    async def _watch_backlog(self) -> None:
        seen = -1
        while True:
            if (version := self.database.changes.version) != seen:
                seen = version
                await self.index_status.refresh_when_due(self.database)
            await asyncio.sleep(STATUS_SECONDS)

    async def _watch_work(self) -> None:
        while True:
            await self.work_status.refresh(self.database, self.leadership)
            await asyncio.sleep(REFRESH_SECONDS)

    async def _load_learner(self) -> None:
        # Loading the learner's modules takes long; on the event loop it would block all jobs.
        with suppress(ReflexioError):  # the first window reports the error
            await asyncio.to_thread(self.setup_for, Config())

    async def _embed(self) -> None:
        def is_quiet() -> bool:
            # Turns are found by their words before they have vectors: embedding yields to learning too.
            return self.traffic.is_quiet and not self.learning_scheduler.is_learning

        await keep_embedding(self.database, self.embedder, is_quiet)

    async def _index(self) -> None:
        # Callers of other processes cannot be seen from here, and each waits while a batch is written: it is small.
        await keep_indexing(self.database, lambda: True)

    async def _learn(self) -> None:
        await self.learning_scheduler.run(lambda: self.traffic.is_busy)

    async def _aggregate(self) -> None:
        await self.aggregation_scheduler.run(self.traffic.wait_for_quiet)

    async def _optimise(self) -> None:
        await self.optimisation_scheduler.run()

    async def tidy(self) -> None:
        """Removes rows that nobody will ask for again, and the former content of what was deleted."""
        now = self.clock.now()
        await self.database.forget_receipts(now - RECEIPTS_KEPT)
        await self.work.forget(now - JOBS_KEPT)
        await self.database.forget_profiles(now - EXPIRED_KEPT)
        await self.database.forget_orphans(now - WINDOWS_KEPT)
        await self.database.forget_learned(now - LEARNED_KEPT)
        await self.database.forget_spend(day_of(now, days_ago=SPEND_DAYS_KEPT))
        self._vectors_seen = await self.database.forget_dropped_vectors(self._vectors_seen)
        await self.database.wipe()

    async def _finish_erasures(self) -> None:
        """Goes on with erasures that the end of a process interrupted. A caller who repeats the call comes first, for
        the receipt."""
        while True:
            before = self.clock.now() - ERASURE_LEFT_SECONDS
            for org_id in await self.database.erasing_organisations(ORGANISATIONS_AT_ONCE):
                store = self.database.of(org_id)
                if await finish_erasures(store, self.clock, self.withdraw_user, self.work, begun_before=before):
                    await self.forget_texts()
            await asyncio.sleep(ERASURE_LEFT_SECONDS)

    async def _tidy_hourly(self) -> None:
        while True:
            await self.tidy()
            await asyncio.sleep(HOUR)

    async def close(self) -> None:
        await self._tasks.cancel_all()
        await self.work.close()
        await self.leadership.release()
        await self.embedder.aclose()
        await self.database.close()


async def open_database(settings: Settings) -> Database:
    """PostgreSQL where an address is set, else SQLite in the data folder."""
    cap = settings.max_daily_tokens
    if settings.database:
        try:
            from reflexio.storage.postgres import open_postgres
        except ModuleNotFoundError as error:
            remedy = "install it with pip install 'reflexio-learn[server,postgres]'"
            raise InvalidRequest(f"REFLEXIO_DATABASE needs the driver of PostgreSQL; {remedy}.") from error
        return await asyncio.to_thread(open_postgres, settings.database, max_daily_tokens=cap)
    from reflexio.storage.sqlite import open_sqlite

    return await asyncio.to_thread(open_sqlite, settings.data / DATABASE, max_daily_tokens=cap)


def choose_embedder(settings: Settings) -> Embedder:
    from reflexio.providers.embedding.cached import CachedEmbedder
    from reflexio.providers.embedding.resolve import resolve

    key, url = settings.openai_api_key, settings.openai_base_url
    return CachedEmbedder(resolve(settings.embedder, api_key=key, base_url=url))


def choose_leadership(settings: Settings, database: Database) -> Leadership:
    if database.type == "postgresql":
        return LeaseLeadership(database.journal, uuid4().hex)
    return FileLeadership(settings.data / LOCK)


def choose_work(settings: Settings, database: Database, leadership: Leadership, clock: Clock) -> Work:
    async def is_working() -> bool:
        """Gives a worker that starts beside this process a moment."""
        for _ in range(WORKER_LOOKS):
            if await leadership.is_taken():
                return True
            await asyncio.sleep(WORKER_SECONDS / WORKER_LOOKS)
        return False

    return DurableWork(
        database.journal,
        is_alone=database.type == "sqlite",
        changes=database.changes,
        is_working=is_working,
        concurrency=settings.concurrency,
        clock=clock,
    )


def choose_learner(settings: Settings, chats: ChatModels, config: Config, local: Callable[[], Learner]) -> Learner:
    """The learner with the model that the organisation or the server names, or the one without a model."""
    name = model_name(settings, config)
    if not name:
        return local()
    from reflexio.learners.llm.learner import LlmLearner

    return LlmLearner(chats.get(config, name))


def choose_critic(settings: Settings, chats: ChatModels, config: Config) -> Critic | None:
    """The critic that judges rollouts and rewords playbooks; None without a model."""
    name = model_name(settings, config)
    if not name:
        return None
    from reflexio.learners.llm.critic import LlmCritic

    judge = chats.get(config, name)
    writer = config.playbook_optimizer_config.reflection_model
    return LlmCritic(judge, chats.get(config, writer) if writer else judge)


async def choose_assistant(
    settings: Settings, database: Database, config: PlaybookOptimizerConfig, addresses: OutgoingAddresses
) -> Assistant:
    from reflexio.providers.assistants import resolve

    return await resolve(config, lambda: script_folder(settings, database), addresses=addresses)


def outgoing_addresses(settings: Settings, database: Database) -> OutgoingAddresses:
    """What organisations may let the server call. A person at home has a model server on their own machine."""

    async def allows_private() -> bool:
        if settings.private_addresses is not None:
            return settings.private_addresses
        if not is_loopback(settings.host) or settings.api_key or settings.require_key:
            return False
        return not await any_exists(database)

    return OutgoingAddresses(allows_private)


async def script_folder(settings: Settings, database: Database) -> Path:
    """The folder that assistant scripts must be in. Raises InvalidRequest when none may run.

    Only the one person of a server without keys on their own machine may run any program: whoever has a key, or
    reaches the server from elsewhere, would otherwise have the rights of the server's account.
    """
    from reflexio.providers.assistants import ANYWHERE

    if settings.scripts:
        return settings.scripts
    if not is_loopback(settings.host):
        raise InvalidRequest(f"This server runs no scripts: other machines can reach it. {NAME_FOLDER}")
    if settings.require_key or settings.api_key or await any_exists(database):
        raise InvalidRequest(f"This server runs no scripts: callers need API keys. {NAME_FOLDER}")
    return ANYWHERE


async def build(
    settings: Settings, *, clock: Clock | None = None, embedder: Embedder | None = None, work: Work | None = None
) -> Reflexio:
    clock, embedder = clock or SystemClock(), embedder or choose_embedder(settings)
    database = await open_database(settings)
    leadership = choose_leadership(settings, database)
    work = work or choose_work(settings, database, leadership, clock)
    addresses = outgoing_addresses(settings, database)
    scopes, stalls, chats = ScopeClassifier(embedder), StallMonitor(clock), ChatModels(settings, addresses)

    @cache
    def local_learner() -> Learner:
        from reflexio.learners.local.learner import LocalLearner

        return LocalLearner(embedder)

    def setup_for(config: Config) -> LearnerSetup:
        return LearnerSetup(choose_learner(settings, chats, config, local_learner), embedder, clock, scopes)

    LearningWorker(database, clock, setup_for, stalls).register(work)
    learning_scheduler = LearningScheduler(database, work, clock, stalls)
    reruns = RerunWorker(database, work, clock, setup_for, stalls)
    reruns.register()
    aggregation = AggregationService(work, clock)
    aggregation_worker = AggregationWorker(database, clock, setup_for, stalls)
    aggregation_worker.register(work)
    backends = OptimisationBackends(
        lambda config: choose_assistant(settings, database, config, addresses),
        lambda config: choose_critic(settings, chats, config),
    )
    optimisation = OptimisationService(work, clock, backends)
    OptimisationWorker(database, clock, backends, stalls.provider_refused, stalls.provider_works).register(work)
    optimisation_scheduler = OptimisationScheduler(database, clock, optimisation, backends)
    aggregation_worker.on_added.append(optimisation_scheduler.on_aggregated)
    return Reflexio(
        settings,
        database,
        clock,
        QueryEmbedder(embedder),
        ImmediateEmbedder(embedder),
        scopes,
        work,
        setup_for,
        LearningService(work, clock, learning_scheduler),
        learning_scheduler,
        reruns,
        aggregation,
        AggregationScheduler(database, clock, aggregation),
        optimisation,
        optimisation_scheduler,
        IndexStatus(clock),
        leadership,
    )
