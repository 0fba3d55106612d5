"""A house with an optimiser: a real database, an engine that can die, and scripted partners."""

import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reflexio.engine.durable import DurableWork
from reflexio.engine.memory import MemoryJournal
from reflexio.errors import InvalidRequest
from reflexio.learners.llm.critic import LlmCritic
from reflexio.learners.local.learner import LocalLearner
from reflexio.learning.workflow import School
from reflexio.models.config import Config, PlaybookOptimizerConfig
from reflexio.models.learning import Kind, Learning
from reflexio.models.optimisation import (
    GetPlaybookOptimizationResponse,
    PlaybookOptimizationJob,
    RunPlaybookOptimizationRequest,
    RunPlaybookOptimizationResponse,
    TargetKind,
)
from reflexio.models.rollout import Guidance, Message
from reflexio.ports.assistant import Assistant
from reflexio.ports.chat import Chat, Messages
from reflexio.ports.critic import Critic
from reflexio.ports.storage import Database, Store, Tx
from reflexio.providers.scripted import AssistantAnswer, ChatAnswer, ScriptedAssistant, ScriptedChat, ScriptedEmbedder
from reflexio.storage.sqlite import open_sqlite
from reflexio.usecases import optimise_show
from reflexio.usecases.learn import Classroom
from reflexio.usecases.optimise import Optimiser, key
from reflexio.usecases.optimise_due import Optimising
from reflexio.usecases.optimise_run import Runs
from tests import parcels
from tests.builders import request, said


class Clock:
    def __init__(self) -> None:
        self.time = 1_000

    def now(self) -> int:
        return self.time


def obedient(messages: Sequence[Message], guidance: Guidance) -> AssistantAnswer:
    return parcels.answer(guidance.content)


@dataclass
class House:
    database: Database
    say: Callable[[Sequence[Message], Guidance], AssistantAnswer] = obedient
    judge: Callable[[Messages], ChatAnswer] = lambda asked: parcels.opinion(asked.case)
    rewrite: Callable[[Messages], ChatAnswer] = lambda asked: parcels.better(asked.case)
    has_model: bool = True
    clock: Clock = field(default_factory=Clock)
    memory: MemoryJournal = field(default_factory=MemoryJournal)
    pauses: list[float] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    users: "itertools.count[int]" = field(default_factory=itertools.count)

    async def start(self) -> Optimiser:
        """Begins, or goes on after a crash."""
        self.scripted = ScriptedAssistant(self._say)
        self.judge_model = ScriptedChat(itertools.repeat(self._judge), name="scripted:judge")
        self.writer_model = ScriptedChat(itertools.repeat(self._rewrite), name="scripted:writer")
        self.assistant: Assistant = self.scripted
        self.judging: Chat = self.judge_model
        self.writing: Chat = self.writer_model
        embedder = ScriptedEmbedder()
        school = School(LocalLearner(embedder), embedder, self.clock)
        self.work = DurableWork(self.memory, clock=self.clock)
        classroom = Classroom(self.database, self.work, self.clock, lambda _: school)
        self.optimiser = Optimiser(classroom, self._assistant, self._critic)
        self.optimising = Optimising(self.optimiser, self._pause)
        Runs(self.optimiser, self._pause).register()
        await self.work.start()
        return self.optimiser

    def _say(self, messages: Sequence[Message], guidance: Guidance) -> AssistantAnswer:
        """Whatever is set at the moment."""
        return self.say(messages, guidance)

    def _judge(self, asked: Messages) -> ChatAnswer:
        return self.judge(asked)

    def _rewrite(self, asked: Messages) -> ChatAnswer:
        return self.rewrite(asked)

    def _assistant(self, config: PlaybookOptimizerConfig) -> Assistant:
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

    async def tell(self, *words: str, user: str = "") -> list[int]:
        """A conversation: user and agent by turns. Gives the numbers of its turns."""
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

    async def lesson(self, number: int, *, user: str = "") -> dict[str, Any]:
        """A stored user playbook with its window, as a source window names it."""
        spoken = [each["content"] for each in parcels.conversation(number)]
        turns = await self.tell(*spoken, user=user)
        details = {"source_interaction_ids": turns[2:], "window_interaction_ids": turns, "source_span": spoken[2]}
        row = Learning(Kind.USER_PLAYBOOK, f"Always {parcels.DEEDS[0]}.", user_id=user or f"u{number}", details=details)
        (made,) = await self.store.write(lambda tx: tx.learnings.add([row]))
        return {"user_playbook_id": made, "source_interaction_ids": turns[2:]}

    async def playbook(self, windows: int = 3, **changes: Any) -> Learning:
        """A pending agent playbook with so many source windows."""
        sources = [await self.lesson(number) for number in range(windows)]
        return await self.stored(sources, **changes)

    async def stored(self, sources: Sequence[dict[str, Any]], **changes: Any) -> Learning:
        values = {"content": parcels.INCUMBENT, "trigger": parcels.TRIGGER, **changes}
        row = Learning(Kind.AGENT_PLAYBOOK, details={"source_windows": list(sources)}, **values)
        (made,) = await self.store.write(lambda tx: tx.learnings.add([row]))
        return (await self.store.read(lambda tx: tx.learnings.many([made])))[made]

    async def ask(self, target: Learning, **more: Any) -> RunPlaybookOptimizationResponse:
        name = f"{target.kind.value}_id"
        asked = RunPlaybookOptimizationRequest.model_validate({name: target.id, "seed": 7, **more})
        return await self.optimiser.run(self.store, asked)

    async def run(self, target: Learning, **more: Any) -> PlaybookOptimizationJob:
        """The job at its end."""
        begun = await self.ask(target, **more)
        assert begun.job_id is not None
        return await self.ended(begun.job_id)

    async def ended(self, job_id: int) -> PlaybookOptimizationJob:
        while not (job := (await self.shown(job_id)).job).has_ended:
            if await self.work.get(key("default", job_id)):
                await self.work.wait(key("default", job_id))
        return job

    async def begun(self, target: Learning) -> PlaybookOptimizationJob:
        """The job that somebody else begins."""
        kind: TargetKind = "agent_playbook"
        while not (jobs := await self.store.read(lambda tx: tx.optimisations.of_target(kind, target.id, 1))):
            continue
        return await self.ended(jobs[0].job_id)

    async def shown(self, job_id: int) -> GetPlaybookOptimizationResponse:
        return await optimise_show.job(self.store, job_id, details=True)

    async def row(self, number: int | None) -> Learning:
        assert number is not None
        return (await self.store.read(lambda tx: tx.learnings.many([number])))[number]


@asynccontextmanager
async def furnished(folder: Path) -> AsyncIterator[House]:
    """A house on a database of its own, configured and at work."""
    database = open_sqlite(folder / "reflexio.db")
    house = House(database)
    await house.start()
    await house.configure()
    yield house
    await house.work.close()
    await database.close()
