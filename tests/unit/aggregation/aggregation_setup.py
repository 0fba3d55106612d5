"""A house that aggregates: a database, a learner as told, and an engine that can die and come again."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from reflexio.aggregation.scheduler import AggregationScheduler
from reflexio.aggregation.service import AggregationService
from reflexio.aggregation.worker import AggregationWorker
from reflexio.engine.job_runner import DurableWork
from reflexio.engine.memory import MemoryJournal
from reflexio.learning.stall import StallMonitor
from reflexio.learning.worker import LearnerSetup
from reflexio.models.config import Config
from reflexio.models.extraction import (
    ClusterToSummarise,
    Consolidation,
    Extraction,
    Neighbourhood,
    PlaybookText,
    Spend,
    Summary,
    Window,
)
from reflexio.models.learning import Kind, Learning, PlaybookStatus
from reflexio.models.operation import Operation
from reflexio.models.paging import Page
from reflexio.organisations import configuration
from reflexio.ports.storage import LearningFilter, Store
from reflexio.providers.scripted import ScriptedEmbedder
from reflexio.retrieval.scope import ScopeClassifier
from reflexio.storage.sqlite import SqliteDatabase

PARCEL, INVOICE = "Ask the neighbours about the parcel.", "Send every invoice as a file."


@dataclass
class HandClock:
    at: int = 1000

    def now(self) -> int:
        return self.at


@dataclass
class Writer:
    """Says what the clearest member says. `failures` are raised by clusters of which that begins with their words."""

    failures: dict[str, list[Exception]] = field(default_factory=dict)
    answers: list[PlaybookText | None] = field(default_factory=list)
    read: list[ClusterToSummarise] = field(default_factory=list)
    configs: list[Config] = field(default_factory=list)
    stand_still: bool = False
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    name: str = "writer"
    fingerprint: str = "f"

    async def check(self) -> Spend:
        return Spend()

    async def extract(self, window: Window, config: Config, kinds: frozenset[Kind]) -> Extraction:
        return Extraction()

    async def consolidate(self, questions: Sequence[Neighbourhood], config: Config) -> Consolidation:
        return Consolidation()

    async def summarise(self, gathered: ClusterToSummarise, config: Config) -> Summary:
        self.read.append(gathered)
        self.configs.append(config)
        if self.stand_still:
            self.reached.set()
            await asyncio.Event().wait()
        for beginning, errors in self.failures.items():
            if gathered.members[0].content.startswith(beginning) and errors:
                raise errors.pop(0)
        cost = Spend("writer", 1, 10, 1)
        if self.answers:
            return Summary(self.answers.pop(0), cost)
        return Summary(PlaybookText(f"{gathered.members[0].content} ({gathered.count})", "whenever"), cost)


@dataclass
class House:
    database: SqliteDatabase
    writer: Writer = field(default_factory=Writer)
    clock: HandClock = field(default_factory=HandClock)
    memory: MemoryJournal = field(default_factory=MemoryJournal)
    pauses: list[float] = field(default_factory=list)

    async def start(self) -> AggregationWorker:
        embedder = ScriptedEmbedder(dimensions=4096)
        setup = LearnerSetup(self.writer, embedder, self.clock, ScopeClassifier(embedder))
        self.work = DurableWork(self.memory)

        async def pause(seconds: float) -> None:
            self.pauses.append(seconds)

        self.aggregations = AggregationService(self.work, self.clock)
        self.scheduler = AggregationScheduler(self.database, self.clock, self.aggregations)
        worker = AggregationWorker(self.database, self.clock, lambda _: setup, StallMonitor(self.clock), pause)
        worker.register(self.work)
        await self.work.start()
        return worker

    @property
    def store(self) -> Store:
        return self.database.of("org")

    async def configure(self, name: str = "playbook", **changes: Any) -> None:
        aggregator = {"clustering_similarity": 0.5, **changes}
        one = {"playbook_name": name, "playbook_definition_prompt": "x", "playbook_aggregator_config": aggregator}
        await configuration.change(self.store, self.clock, {"playbook_configs": [one]})

    async def teach(
        self, *said: str, first: int = 1, name: str = "playbook", news: bool = False, user: str = ""
    ) -> list[int]:
        """Each by a user of its own, who is numbered, or all by one."""
        rows = [
            Learning(
                Kind.USER_PLAYBOOK,
                content,
                user_id=user or f"u{number}",
                agent_version="v1",
                name=name,
                details={"source_interaction_ids": [number], "window_interaction_ids": [number, number + 1000]},
                created_at=self.clock.now(),
                modified_at=self.clock.now(),
            )
            for number, content in enumerate(said, start=first)
        ]
        ids = await self.store.write(lambda tx: tx.learnings.add(rows))
        if news:
            await self.store.write(lambda tx: tx.pools.mark("v1", name, len(rows), self.clock.now()))
        return ids

    async def run(self, playbook_name: str | None = None) -> Operation:
        if not hasattr(self, "aggregations"):
            await self.start()
        run = await self.aggregations.begin(self.store, "v1", lambda _: playbook_name, {})
        return await self.aggregations.wait(self.store, run)

    async def look(self) -> int:
        """One look at the pools, and all that it begins."""
        if not hasattr(self, "aggregations"):
            await self.start()
        begun = await self.scheduler.start_due()
        while running := self.scheduler.tasks._tasks:
            await asyncio.gather(*running)
        return begun

    async def made(self, *reviews: PlaybookStatus, statuses: Any = None) -> list[Learning]:
        """Agent playbooks that stand, oldest first."""
        where = LearningFilter(Kind.AGENT_PLAYBOOK, reviews=reviews or None, **statuses or {})
        found = await self.store.read(lambda tx: tx.learnings.page(where, Page(100)))
        return sorted(found.rows, key=lambda row: row.id)


def told(rows: Sequence[Learning]) -> list[str]:
    return [row.content for row in rows]
