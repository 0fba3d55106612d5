"""The composition root: Settings in, a running Reflexio out. The only file that names backends."""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from reflexio.engine.durable import DurableWork
from reflexio.engine.process_lock import ProcessLock
from reflexio.errors import ReflexioError, StorageTaken
from reflexio.learning.workflow import School
from reflexio.models.config import APIKeyConfig, Config, PlaybookOptimizerConfig
from reflexio.models.loopback import is_loopback
from reflexio.ports.assistant import Assistant
from reflexio.ports.chat import Chat
from reflexio.ports.clock import Clock, SystemClock
from reflexio.ports.critic import Critic
from reflexio.ports.embedding import Embedder
from reflexio.ports.learner import Learner
from reflexio.ports.storage import Database
from reflexio.ports.work import Work
from reflexio.providers.chat.resolve import ProviderCredentials
from reflexio.retrieval.meaning import Meaning
from reflexio.settings import Settings
from reflexio.usecases.aggregate import Aggregations
from reflexio.usecases.embed import Traffic, keep_embedding
from reflexio.usecases.gather import Gatherer
from reflexio.usecases.learn import Classroom
from reflexio.usecases.optimise import Optimiser
from reflexio.usecases.optimise_due import Optimising
from reflexio.usecases.optimise_run import Runs
from reflexio.usecases.rerun import Reruns

T = TypeVar("T")

log = logging.getLogger("reflexio")

DATABASE, LOCK = "reflexio.db", "work.lock"
RECEIPTS_KEPT, JOBS_KEPT = 7 * 86_400, 86_400
HOUR, PAUSE, TURN = 3600.0, 5.0, 1.0


@dataclass
class Reflexio:
    """All parts, connected."""

    settings: Settings
    database: Database
    clock: Clock
    embedder: Embedder
    meaning: Meaning
    work: Work
    classroom: Classroom
    reruns: Reruns
    aggregations: Aggregations
    optimiser: Optimiser
    optimising: Optimising
    traffic: Traffic = field(default_factory=Traffic)
    _works: asyncio.Event = field(default_factory=asyncio.Event)
    _tasks: list["asyncio.Task[None]"] = field(default_factory=list)

    def start(self) -> None:
        """Begins the work that goes on beside the calls."""
        for work in (self._tidy_hourly, self._warm, self._embed, self._learn, self._gather, self._optimise):
            self._tasks.append(asyncio.create_task(_kept_up(work)))

    async def _warm(self) -> None:
        await self.database.warm(self.embedder.name)

    async def _embed(self) -> None:
        async def is_lull() -> bool:
            # Turns are found by their words before they have vectors: they give way to learning too.
            if not await self.traffic.lull():
                return False
            if self.classroom.is_learning:
                await asyncio.sleep(self.traffic.QUIET)
            return not self.classroom.is_learning

        await keep_embedding(self.database, self.embedder, is_lull)

    async def _learn(self) -> None:
        await self._take_over()
        # Its modules take long to load, and on the loop nobody would be served meanwhile.
        with suppress(ReflexioError):  # whoever learns first is told
            await asyncio.to_thread(self.classroom.taught_by, Config())
        await self.classroom.keep_learning(lambda: self.traffic.is_crowded)

    async def _gather(self) -> None:
        await self._works.wait()
        await Gatherer(self.aggregations).keep_gathering(self.traffic.lull)

    async def _optimise(self) -> None:
        await self._works.wait()
        await self.optimising.keep_optimising()

    async def _take_over(self) -> None:
        """Two servers may share a folder: one of them learns, and when it is gone the other one does."""
        told = False
        while not self._works.is_set():
            try:
                await self.work.start()
                self._works.set()
            except StorageTaken as error:
                if not told:
                    log.warning("this server does not learn: %s", error)
                told = True
                await asyncio.sleep(TURN)

    async def tidy(self) -> None:
        """Removes what nobody will ask for again."""
        now = self.clock.now()
        await self.database.forget_receipts(now - RECEIPTS_KEPT)
        await self.work.forget(now - JOBS_KEPT)

    async def _tidy_hourly(self) -> None:
        while True:
            await self.tidy()
            await asyncio.sleep(HOUR)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.work.close()
        await self.embedder.aclose()
        await self.database.close()


async def _kept_up(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Work beside the calls goes on whatever happens to it: an error nobody expected is logged, not the end."""
    while True:
        try:
            return await work()
        except Exception:
            log.exception("background work failed and begins again in %g s", PAUSE)
            await asyncio.sleep(PAUSE)


async def open_database(settings: Settings) -> Database:
    from reflexio.storage.sqlite import open_sqlite

    return await asyncio.to_thread(open_sqlite, settings.data / DATABASE)


def choose_embedder(settings: Settings) -> Embedder:
    from reflexio.providers.embedding.cached import CachedEmbedder
    from reflexio.providers.embedding.resolve import resolve

    key, url = settings.openai_api_key, settings.openai_base_url
    return CachedEmbedder(resolve(settings.embedder, api_key=key, base_url=url))


def choose_work(settings: Settings, database: Database, clock: Clock) -> Work:
    def process_lock() -> ProcessLock:
        return ProcessLock(settings.data / LOCK)

    return DurableWork(database.journal, concurrency=settings.concurrency, clock=clock, process_lock=process_lock)


def schools(settings: Settings, embedder: Embedder, clock: Clock) -> Callable[[Config], School]:
    """Who learns for an organisation: the model that it or the server names, else the learner without one."""
    learner = _kept(settings, lambda config: choose_learner(settings, config, embedder))
    return lambda config: School(learner(config), embedder, clock)


def _kept(settings: Settings, make: Callable[[Config], T]) -> Callable[[Config], T]:
    """Models keep their connections; another configuration of models or keys makes another one."""
    known: dict[str, T] = {}

    def find(config: Config) -> T:
        writer = config.playbook_optimizer_config.reflection_model
        models = f"{config.llm_config!r} {provider_keys(settings, config)!r} {model_name(settings, config)} {writer}"
        secret = "".join(key.api_key for key in provider_keys(settings, config).values())
        which = hashlib.sha256(f"{models} {secret}".encode()).hexdigest()
        if which not in known:
            known[which] = make(config)
        return known[which]

    return find


def choose_learner(settings: Settings, config: Config, embedder: Embedder) -> Learner:
    name = model_name(settings, config)
    if not name:
        from reflexio.learners.local.learner import LocalLearner

        return LocalLearner(embedder)
    from reflexio.learners.llm.learner import LlmLearner

    return LlmLearner(choose_chat(settings, config, name))


def choose_chat(settings: Settings, config: Config, name: str) -> Chat:
    from reflexio.providers.chat.resolve import TIMEOUT_SECONDS, resolve

    wanted = config.llm_config.generation_timeout_seconds if config.llm_config else None
    return resolve(name, keys=provider_keys(settings, config), timeout=wanted or TIMEOUT_SECONDS)


def choose_critic(settings: Settings, config: Config) -> Critic | None:
    """Who judges rollouts and finds better words; nobody without a model."""
    name = model_name(settings, config)
    if not name:
        return None
    from reflexio.learners.llm.critic import LlmCritic

    judge = choose_chat(settings, config, name)
    writer = config.playbook_optimizer_config.reflection_model
    return LlmCritic(judge, choose_chat(settings, config, writer) if writer else judge)


def choose_assistant(settings: Settings, config: PlaybookOptimizerConfig) -> Assistant:
    from reflexio.providers.assistants import resolve

    # Who may configure a server that others reach could otherwise run any program on it.
    anywhere = Path("/") if is_loopback(settings.host) else None
    return resolve(config, scripts=settings.scripts or anywhere)


def model_name(settings: Settings, config: Config) -> str:
    if config.api_key_config and config.api_key_config.custom_endpoint:
        return f"custom:{config.api_key_config.custom_endpoint.model}"
    own = config.llm_config.generation_model_name if config.llm_config else None
    return own or settings.model


def provider_keys(settings: Settings, config: Config) -> dict[str, ProviderCredentials]:
    """The server's keys, and over them the organisation's own."""
    return {**settings.provider_keys, **(_own_keys(config.api_key_config) if config.api_key_config else {})}


def _own_keys(config: APIKeyConfig) -> dict[str, ProviderCredentials]:
    keys = {}
    for name in APIKeyConfig.model_fields:
        entry = getattr(config, name)
        if entry is not None and entry.api_key is not None:
            provider = {"custom_endpoint": "custom", "gemini": "google"}.get(name, name)
            keys[provider] = ProviderCredentials(entry.api_key.get_secret_value(), entry.api_base or "")
    return keys


async def build(
    settings: Settings, *, clock: Clock | None = None, embedder: Embedder | None = None, work: Work | None = None
) -> Reflexio:
    time, chosen = clock or SystemClock(), embedder or choose_embedder(settings)
    database = await open_database(settings)
    working = work or choose_work(settings, database, time)
    classroom = Classroom(database, working, time, schools(settings, chosen, time))
    classroom.register()
    reruns = Reruns(classroom)
    reruns.register()
    aggregations = Aggregations(classroom)
    aggregations.register()
    optimiser = Optimiser(
        classroom,
        lambda config: choose_assistant(settings, config),
        _kept(settings, lambda config: choose_critic(settings, config)),
    )
    Runs(optimiser).register()
    optimising = Optimising(optimiser)
    aggregations.written.append(optimising.written)
    parts = classroom, reruns, aggregations, optimiser, optimising
    return Reflexio(settings, database, time, chosen, Meaning(chosen), working, *parts)
