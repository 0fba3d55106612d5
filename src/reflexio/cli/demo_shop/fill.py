"""Fills a folder with the demo: the conversations are published, learned, aggregated and reviewed by the services.

The clock of the services is set to the time of each conversation. What the agent answers depends on what its context
holds: once a lesson is known, fewer customers have to correct it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from random import Random

from reflexio.app import Reflexio, build
from reflexio.cli.demo_shop.conversations import NEXT_SHOP, SHOP, STAY, DemoConversation, write_conversations
from reflexio.cli.demo_shop.optimise import NAME, demo_backends
from reflexio.cli.demo_shop.review import review_pending
from reflexio.errors import UnreadableAnswer
from reflexio.interactions.publish import publish
from reflexio.jobs import operations, token_budget
from reflexio.learning import failure, manual_edits
from reflexio.learning.scheduler import window_task
from reflexio.learning.stall import StallMonitor
from reflexio.learning.window import next_window
from reflexio.models.extraction import Spend
from reflexio.models.interaction import PublishRequest, RetrievedLearning
from reflexio.models.learning import Kind, PlaybookStatus
from reflexio.models.optimisation import RunPlaybookOptimizationRequest
from reflexio.models.paging import Page
from reflexio.models.playbook import RecordOutcomeRequest
from reflexio.models.search import ContextRequest, ContextResponse
from reflexio.optimisation.service import OptimisationService
from reflexio.optimisation.worker import OptimisationWorker
from reflexio.organisations import configuration
from reflexio.organisations.keys import DEFAULT_ORG
from reflexio.ports.chat import estimate
from reflexio.ports.storage import LearningFilter, Store, TurnScope, Tx
from reflexio.retrieval.embedding_backlog import embed_some, index_rows
from reflexio.retrieval.service import get_context
from reflexio.settings import Settings

SEED = 7
AGGREGATIONS = {
    6: (SHOP, STAY),
    12: (SHOP, STAY),
    17: (SHOP, NEXT_SHOP, STAY),
    22: (NEXT_SHOP, STAY),
    26: (NEXT_SHOP, STAY),
}
"""On the evening of which days which versions are aggregated. What the last run proposes stays in the review queue."""
OPTIMISED_ON, RERUN_ON, SET_ASIDE_ON = 22, 19, 24
MOST_OPTIMISED = 3
DAY = 86_400
FOLLOWED = 0.85
"""How often the agent follows a playbook that is in its context."""
PROMPT_TOKENS = 1_850
"""Tokens of a prompt before the turns: what a model would have been sent for each window."""
AGENT = (
    "Support agent of Hearth & Harbour, four shops for the home, and concierge of its two guest houses. It answers "
    "questions about orders, deliveries, returns and bookings."
)
CONFIG = {
    "agent_context_prompt": AGENT,
    "daily_token_budget": 200_000,
    "tool_can_use": [
        {"tool_name": "get_order", "tool_description": "Status and delivery of an order"},
        {"tool_name": "get_invoice", "tool_description": "The invoice of an order as a PDF"},
    ],
    "playbook_optimizer_config": {
        "enabled": True,
        "max_metric_calls": 14,
        "min_commit_windows": 1,
        "early_stop_score": 1.0,
    },
}
Progress = Callable[[int, int], None]
"""Is told how many of how many conversations are done."""


class DemoClock:
    """A clock that stands where it was set."""

    def __init__(self, now: int) -> None:
        self.moment = now

    def now(self) -> int:
        return self.moment


async def fill(folder: Path, progress: Progress, *, end: datetime, seed: int = SEED) -> None:
    """Fills the database in `folder` with the four weeks before `end`."""
    conversations = write_conversations(seed, end)
    clock = DemoClock(conversations[0].started_at)
    parts = await build(Settings(data=folder), clock=clock)
    try:
        await _Filling(parts, clock, parts.database.of(DEFAULT_ORG), Random(seed)).run(conversations, progress)
    finally:
        await parts.close()


@dataclass
class _Filling:
    parts: Reflexio
    clock: DemoClock
    store: Store
    random: Random
    reviews: int = 0
    topics: dict[str, str] = field(default_factory=dict)
    """What each request was about."""
    optimisation: OptimisationService = field(init=False)

    async def run(self, conversations: list[DemoConversation], progress: Progress) -> None:
        self._use_demo_backends()
        await self.parts.work.start()
        await configuration.change(self.store, self.clock, CONFIG)
        first_day = conversations[0].started_at // DAY
        for number, (conversation, following) in enumerate(_pairs(conversations)):
            self.clock.moment = conversation.started_at
            await self._play(conversation)
            progress(number + 1, len(conversations))
            day = conversation.started_at // DAY
            if following is None or following.started_at // DAY != day:
                await self._end_day(
                    day - first_day, min((day + 1) * DAY - 3 * 3600, conversations[-1].started_at + 600)
                )
        await configuration.change(self.store, self.clock, {"playbook_optimizer_config": {"enabled": False}})

    def _use_demo_backends(self) -> None:
        """Replaces the assistant and the judge of the optimiser, which would need a model."""
        backends, work = demo_backends(), self.parts.work
        self.optimisation = OptimisationService(work, self.clock, backends)

        async def ignore(*_: object) -> None:
            """There is no provider that could stall."""

        OptimisationWorker(self.parts.database, self.clock, backends, ignore, ignore).register(work)

    async def _play(self, conversation: DemoConversation) -> None:
        """One conversation: what the agent knows, what is said, and what is learned."""
        context = await self._context(conversation)
        is_known = conversation.topic in await self._topics(context) and self.random.random() < FOLLOWED
        retrieved = [RetrievedLearning(kind=item.kind, learning_id=item.id) for item in context.items]
        turns = conversation.turns(is_known=is_known, retrieved=retrieved)
        request = PublishRequest(
            user_id=conversation.user_id,
            interaction_data_list=turns,
            source=conversation.source,
            agent_version=conversation.agent_version,
            session_id=conversation.session_id,
            session_finished=True,
        )
        response = await publish(self.parts.database, self.store, self.clock, request)
        self.topics[response.request_id or ""] = conversation.topic
        self.clock.moment += 60 * len(turns)
        await self.parts.learning.learn_publish(self.store, conversation.user_id, response)
        sent = PROMPT_TOKENS + sum(estimate(turn.content) for turn in turns)
        spend = Spend(NAME, calls=1, input_tokens=sent, output_tokens=sent // 12, estimated_calls=1)
        await self.store.write(lambda tx: token_budget.record(tx, spend, "learn", self.clock.now()))
        await self._record_outcome(context)

    async def _context(self, conversation: DemoConversation) -> ContextResponse:
        request = ContextRequest(
            query=conversation.opener, user_id=conversation.user_id, agent_version=conversation.agent_version
        )
        return await get_context(self.store, self.parts.query_embedder, request, self.clock.now())

    async def _topics(self, context: ContextResponse) -> set[str]:
        """What the playbooks in a context were learned from."""
        ids = [int(item.id) for item in context.items if item.kind != "profile"]

        def requests(tx: Tx) -> set[str]:
            rows = tx.learnings.many(ids).values()
            windows = [window for row in rows for window in row.details.get("source_windows", [])]
            sources = tx.learnings.many([window["user_playbook_id"] for window in windows]).values()
            return {row.request_id for row in (*rows, *sources)}

        return {self.topics.get(request, "") for request in await self.store.read(requests)}

    async def _record_outcome(self, context: ContextResponse) -> None:
        """The shop asks some customers whether the answer helped."""
        draw = self.random.random()
        items = [item for item in context.items if item.layer == "relevant"]
        ids = {
            kind: [int(item.id) for item in items if item.kind == kind] for kind in ("user_playbook", "agent_playbook")
        }
        if draw < 0.6 and any(ids.values()):
            request = RecordOutcomeRequest(
                outcome="hurt" if draw < 0.05 else "helped",
                user_playbook_ids=ids["user_playbook"],
                agent_playbook_ids=ids["agent_playbook"],
            )
            await manual_edits.record_outcome(self.store, request)

    async def _end_day(self, day: int, evening: int) -> None:
        self.clock.moment = evening
        await self._embed_all()
        if day == RERUN_ON:
            await self._rerun()
        if day == SET_ASIDE_ON:
            await self._set_aside()
        if day in AGGREGATIONS:
            for version in AGGREGATIONS[day]:
                await self._aggregate(version)
            if day == OPTIMISED_ON:
                await self._optimise()
            if day != max(AGGREGATIONS):
                self.clock.moment += 11 * 3600
                self.reviews += await review_pending(self.store, self.clock, self.parts.embedder.name, self.reviews)
            await self._embed_all()

    async def _embed_all(self) -> None:
        database = self.parts.database
        while await index_rows(database, 500):
            pass
        while await embed_some(database, self.parts.embedder):
            pass

    async def _aggregate(self, version: str) -> None:
        params = {"agent_version": version}
        run = await self.parts.aggregation.begin(self.store, version, lambda _: None, params)
        await self.parts.aggregation.wait(self.store, run)
        self.clock.moment += 90

    async def _optimise(self) -> None:
        pending = LearningFilter(Kind.AGENT_PLAYBOOK, reviews=(PlaybookStatus.PENDING,))
        rows = (await self.store.read(lambda tx: tx.learnings.page(pending, Page(50)))).rows
        targets = sorted(rows, key=lambda row: -len(row.details.get("source_windows", ())))[:MOST_OPTIMISED]
        for seed, target in enumerate(targets):
            request = RunPlaybookOptimizationRequest(agent_playbook_id=target.id, seed=seed)
            response = await self.optimisation.run(self.store, request)
            if response.success:
                await self.parts.work.wait(f"optimise:{self.store.org_id}:{response.job_id}")
            self.clock.moment += 240

    async def _rerun(self) -> None:
        """A rerun of the kiosk's conversations, whose result waits for an upgrade; another one is cancelled."""
        scope, params = TurnScope(source="kiosk"), {"source": "kiosk"}
        operation_id = await self.parts.reruns.begin(self.store, Kind.PROFILE, scope, params)
        await self.parts.work.wait(f"rerun:{self.store.org_id}:{operation_id}")
        self.clock.moment += 300

        def cancel(tx: Tx) -> None:
            now = self.clock.now()
            begun = operations.begin(
                tx, "playbook_generation", "demo-cancelled", {"source": "web"}, now, total_users=31
            )
            operations.stop(tx, begun.id, now + 4)

        await self.store.write(cancel)

    async def _set_aside(self) -> None:
        """A window that could not be learned, as after a model that answers something unreadable."""
        text = "Order 0xDEAD " * 40
        request = PublishRequest.model_validate(
            {
                "user_id": "kiosk-terminal-3",
                "interaction_data_list": [{"role": "User", "content": text, "created_at": self.clock.now()}],
                "source": "kiosk",
                "agent_version": NEXT_SHOP,
                "session_id": "kiosk-terminal-3",
            }
        )
        await publish(self.parts.database, self.store, self.clock, request)
        config = await self.store.read(configuration.stored_config)
        turns = await self.store.read(lambda tx: tx.interactions.unlearned(request.user_id, config.window_size))
        error = UnreadableAnswer(f"{NAME} answered no JSON")
        for attempt in range(failure.MOST_ATTEMPTS):
            task = window_task(self.store.org_id, request.user_id, next_window(turns, config), attempt=attempt)
            await failure.fail(task, self.store, self.clock, StallMonitor(self.clock), error)
            self.clock.moment += 300


def _pairs(conversations: list[DemoConversation]) -> Iterator[tuple[DemoConversation, DemoConversation | None]]:
    return zip(conversations, [*conversations[1:], None], strict=True)
