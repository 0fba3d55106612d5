"""A test harness for optimisation: a real database, an engine that can crash, and scripted backends."""

import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reflexio.engine.job_runner import DurableWork
from reflexio.engine.memory import MemoryJournal
from reflexio.errors import InvalidRequest
from reflexio.learners.llm.critic import LlmCritic
from reflexio.learning.stall import StallMonitor
from reflexio.models.config import Config, PlaybookOptimizerConfig
from reflexio.models.learning import Kind, Learning
from reflexio.models.optimisation import (
    ChatMessage,
    GetPlaybookOptimizationResponse,
    Guidance,
    PlaybookOptimizationJob,
    RunPlaybookOptimizationRequest,
    RunPlaybookOptimizationResponse,
    TargetKind,
)
from reflexio.optimisation.scheduler import OptimisationScheduler
from reflexio.optimisation.service import OptimisationBackends, OptimisationService, job_key
from reflexio.optimisation.worker import OptimisationWorker
from reflexio.ports.assistant import Assistant
from reflexio.ports.chat import Chat, Messages
from reflexio.ports.learner import Critic
from reflexio.ports.storage import Database, Store, Tx
from reflexio.providers.scripted import (
    AssistantAnswer,
    ChatAnswer,
    ScriptedAssistant,
    ScriptedChat,
)
from reflexio.storage.sqlite import open_sqlite
from tests import parcels
from tests.builders import request, said


class Clock:
    def __init__(self) -> None:
        self.time = 1_000

    def now(self) -> int:
        return self.time


def obedient(messages: Sequence[ChatMessage], guidance: Guidance) -> AssistantAnswer:
    return parcels.answer(guidance.content)


@dataclass
class Harness:
    database: Database
    say: Callable[[Sequence[ChatMessage], Guidance], AssistantAnswer] = obedient
    judge: Callable[[Messages], ChatAnswer] = lambda asked: parcels.opinion(asked.case)
    rewrite: Callable[[Messages], ChatAnswer] = lambda asked: parcels.better(asked.case)
    has_model: bool = True
    clock: Clock = field(default_factory=Clock)
    memory: MemoryJournal = field(default_factory=MemoryJournal)
    pauses: list[float] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    users: "itertools.count[int]" = field(default_factory=itertools.count)

    async def start(self) -> None:
        """Starts, also again after a crash."""
        self.scripted = ScriptedAssistant(self._say)
        self.judge_model = ScriptedChat(itertools.repeat(self._judge), name="scripted:judge")
        self.writer_model = ScriptedChat(itertools.repeat(self._rewrite), name="scripted:writer")
        self.assistant: Assistant = self.scripted
        self.judging: Chat = self.judge_model
        self.writing: Chat = self.writer_model
        self.work = DurableWork(self.memory, clock=self.clock)
        stalls = StallMonitor(self.clock)
        backends = OptimisationBackends(self._assistant, self._critic)
        self.service = OptimisationService(self.work, self.clock, backends)
        self.scheduler = OptimisationScheduler(self.database, self.clock, self.service, backends, self._pause)
        worker = OptimisationWorker(
            self.database, self.clock, backends, stalls.provider_refused, stalls.provider_works, self._pause
        )
        worker.register(self.work)
        await self.work.start()

    def _say(self, messages: Sequence[ChatMessage], guidance: Guidance) -> AssistantAnswer:
        """Looks up `say` at every call, because tests replace it."""
        return self.say(messages, guidance)

    def _judge(self, asked: Messages) -> ChatAnswer:
        return self.judge(asked)

    def _rewrite(self, asked: Messages) -> ChatAnswer:
        return self.rewrite(asked)

    async def _assistant(self, config: PlaybookOptimizerConfig) -> Assistant:
        if not config.webhook_url:
            raise InvalidRequest("no assistant")
        return self.assistant

    def _critic(self, config: Config) -> Critic | None:
        return LlmCritic(self.judging, self.writing) if self.has_model else None

    async def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)

    @property
    def store(self) -> Store:
        return self.database.of("default")

    async def configure(self, **settings: Any) -> None:
        self.settings = {"enabled": True, "webhook_url": "http://127.0.0.1:1/", **settings}
        top = {name: self.settings.pop(name) for name in ("daily_token_budget",) if name in self.settings}
        document = Config(playbook_optimizer_config=self.settings, **top).model_dump_json(context={"reveal": True})
        await self.store.write(lambda tx: tx.configs.put(document, 1))

    async def add_conversation(self, *words: str, user: str = "") -> list[int]:
        """Stores turns of user and agent, in alternation, and returns their ids."""
        asked = request(user_id=user or f"user-{next(self.users)}")
        turns = [
            each.model_copy(update={"role": "Agent" if place % 2 else "User"})
            for place, each in enumerate(said(*words))
        ]

        def put(tx: Tx) -> list[int]:
            tx.requests.add(asked)
            tx.interactions.add(asked, turns)
            return [turn.interaction_id for turn in tx.interactions.of_requests([asked.request_id])]

        return await self.store.write(put)

    async def add_user_playbook(self, number: int, *, user: str = "") -> dict[str, Any]:
        """Stores a user playbook with its window and returns its source window."""
        spoken = [each["content"] for each in parcels.conversation(number)]
        turns = await self.add_conversation(*spoken, user=user)
        details = {"source_interaction_ids": turns[2:], "window_interaction_ids": turns, "source_span": spoken[2]}
        row = Learning(Kind.USER_PLAYBOOK, f"Always {parcels.DEEDS[0]}.", user_id=user or f"u{number}", details=details)
        (playbook_id,) = await self.store.write(lambda tx: tx.learnings.add([row]))
        return {"user_playbook_id": playbook_id, "source_interaction_ids": turns[2:]}

    async def add_playbook(self, windows: int = 3, **changes: Any) -> Learning:
        """Stores a pending agent playbook with this many source windows."""
        sources = [await self.add_user_playbook(number) for number in range(windows)]
        return await self.add_agent_playbook(sources, **changes)

    async def add_agent_playbook(self, sources: Sequence[dict[str, Any]], **changes: Any) -> Learning:
        values = {"content": parcels.INCUMBENT, "trigger": parcels.TRIGGER, **changes}
        row = Learning(Kind.AGENT_PLAYBOOK, details={"source_windows": list(sources)}, **values)
        (playbook_id,) = await self.store.write(lambda tx: tx.learnings.add([row]))
        return (await self.store.read(lambda tx: tx.learnings.many([playbook_id])))[playbook_id]

    async def request_run(self, target: Learning, **more: Any) -> RunPlaybookOptimizationResponse:
        name = f"{target.kind.value}_id"
        body = RunPlaybookOptimizationRequest.model_validate({name: target.id, "seed": 7, **more})
        return await self.service.run(self.store, body)

    async def run(self, target: Learning, **more: Any) -> PlaybookOptimizationJob:
        """Runs a job and returns it when it has ended."""
        begun = await self.request_run(target, **more)
        assert begun.job_id is not None
        return await self.wait_until_ended(begun.job_id)

    async def wait_until_ended(self, job_id: int) -> PlaybookOptimizationJob:
        while not (job := (await self.show(job_id)).job).has_ended:
            if await self.work.get(job_key("default", job_id)):
                await self.work.wait(job_key("default", job_id))
        return job

    async def wait_for_job(self, target: Learning) -> PlaybookOptimizationJob:
        """Waits for a job that the scheduler starts, and for its end."""
        kind: TargetKind = "agent_playbook"
        while not (jobs := await self.store.read(lambda tx: tx.optimisations.of_target(kind, target.id, 1))):
            continue
        return await self.wait_until_ended(jobs[0].job_id)

    async def show(self, job_id: int) -> GetPlaybookOptimizationResponse:
        return await self.service.show_job(self.store, job_id, details=True)

    async def get(self, number: int | None) -> Learning:
        assert number is not None
        return (await self.store.read(lambda tx: tx.learnings.many([number])))[number]


@asynccontextmanager
async def running_harness(folder: Path) -> AsyncIterator[Harness]:
    """A harness with its own database, configured and started."""
    database = open_sqlite(folder / "reflexio.db")
    harness = Harness(database)
    await harness.start()
    await harness.configure()
    yield harness
    await harness.work.close()
    await database.close()
