"""Reruns: a user's turns are learned once more, window by window, into a pending generation beside the current one.

One durable workflow an operation, user after user. The draft of a user is computed from the results of its steps, so
after a crash it is rebuilt without new model calls. Current learnings are neither read nor changed; an upgrade makes
the pending ones current.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from uuid import uuid4

from reflexio.errors import ProviderError, ProviderRefused
from reflexio.jobs import operations
from reflexio.jobs.background import BackgroundTasks
from reflexio.jobs.operations import OperationRun
from reflexio.jobs.retry import Pause, with_retries
from reflexio.learning.consolidate import MOST_NEIGHBOURS, NEAR, Origin, new_learning
from reflexio.learning.service import begin_generation
from reflexio.learning.stall import StallMonitor
from reflexio.learning.window import (
    PlannedWindow,
    WindowTurns,
    build_window,
    consecutive_windows,
    read_turns,
    rerun_types,
)
from reflexio.learning.worker import (
    CANDIDATES,
    DECISIONS,
    LearnerSetup,
    SetupFor,
    consolidate,
    extract,
    mark_unread,
)
from reflexio.models.config import Config
from reflexio.models.extraction import Decision, ExtractedLearning, Neighbour, Neighbourhood, Window
from reflexio.models.learning import Kind, Learning, Status
from reflexio.models.operation import RerunPlaybookGenerationRequest, RerunProfileGenerationRequest
from reflexio.organisations.configuration import stored_config
from reflexio.organisations.usage import is_within_budget
from reflexio.ports.clock import Clock
from reflexio.ports.embedding import Embedder
from reflexio.ports.storage import Database, LearningFilter, LineageEvent, Store, TimeRange, TurnScope, Tx
from reflexio.ports.work import Json, Steps, Work
from reflexio.retrieval.filters import time_range

WORKFLOW = OPERATION = "rerun"


def profile_scope(request: RerunProfileGenerationRequest) -> TurnScope:
    within = time_range(request.start_time, request.end_time)
    unread = Kind.PROFILE if request.only_unread else None
    return TurnScope(user_id=request.user_id, source=request.source or None, within=within, only_unread=unread)


def playbook_scope(request: RerunPlaybookGenerationRequest) -> TurnScope:
    within = time_range(request.start_time, request.end_time)
    unread = Kind.USER_PLAYBOOK if request.only_unread else None
    version, source = request.agent_version, request.source or None
    return TurnScope(agent_version=version, source=source, within=within, only_unread=unread)


@dataclass(frozen=True)
class Draft:
    """What a rerun has learned of a user so far. Rows are numbered in the order of creation; none is stored yet."""

    rows: tuple[Learning, ...] = ()
    created: int = 0
    readings: tuple[tuple[tuple[int, ...], Json], ...] = ()
    """Of each window its turns, and what the extraction says about which of them were understood."""

    def apply(self, candidate: ExtractedLearning, decision: Decision, origin: Origin, now: int) -> "Draft":
        targets = [row for row in self.rows if row.id in decision.targets]
        rest = tuple(row for row in self.rows if row.id not in decision.targets)
        match decision.action:
            case "drop":
                return self
            case "forget":
                return replace(self, rows=rest)
            case "add" | "merge" | "replace":
                row = replace(new_learning(candidate, decision, origin, now, targets), id=self.created + 1)
                if decision.action == "merge":
                    row = _with_evidence_of(row, targets)
                kept = self.rows if decision.action == "add" else rest
                return replace(self, rows=(*kept, row), created=row.id)


def _with_evidence_of(merged: Learning, parts: Sequence[Learning]) -> Learning:
    """A merged row keeps the evidence of all its parts."""
    sources = [row.details for row in (*parts, merged)]
    details = {"source_span": "\n".join(dict.fromkeys(source["source_span"] for source in sources))}
    ids = {
        name: sorted({turn for source in sources for turn in source[name]})
        for name in ("source_interaction_ids", "window_interaction_ids")
    }
    return replace(merged, details={**merged.details, **details, **ids})


@dataclass(frozen=True)
class UserRerun:
    """One user's part of a rerun."""

    kind: Kind
    user_id: str
    scope: TurnScope
    config: Config
    store: Store
    setup: LearnerSetup

    async def windows(self, steps: Steps) -> list[PlannedWindow]:
        """All turns in the scope, in consecutive windows."""

        async def plan() -> Json:
            turns = await self.store.read(lambda tx: tx.interactions.within(self.scope, self.user_id))
            return {"windows": [asdict(window) for window in consecutive_windows(turns, self.config)]}

        planned = (await steps("plan", plan))["windows"]
        return [PlannedWindow(**{**window, "turns": tuple(window["turns"])}) for window in planned]

    async def learn(self, steps: Steps, number: int, windows: Sequence[PlannedWindow], draft: Draft) -> Draft:
        """The draft after one more window."""
        window = windows[number]
        read = await self._read_window(number, windows)
        types = rerun_types(self.config, window.source, self.kind)
        extracted = await extract(steps, f"{number}.extract", read, types, self.store, self.setup, OPERATION)
        reading = {name: extracted.get(name, []) for name in ("kinds", "unread")}
        draft = replace(draft, readings=(*draft.readings, (window.turns, reading)))
        if not extracted["candidates"]:
            return draft
        candidates = CANDIDATES.validate_python(extracted["candidates"])
        decided = await steps(f"{number}.consolidate", lambda: self._consolidate(candidates, draft))
        place = (self.user_id, window.agent_version, window.source, window.request_id, window.turns)
        origin = Origin(*place, self.setup.learner.name, self.setup.learner.fingerprint, Status.PENDING)
        for candidate, decision in zip(candidates, DECISIONS.validate_python(decided["decisions"]), strict=True):
            draft = draft.apply(candidate, decision, origin, self.setup.clock.now())
        return draft

    async def _read_window(self, number: int, windows: Sequence[PlannedWindow]) -> Window:
        here = windows[number]
        room = max(0, self.config.window_size - len(here.turns))
        before = windows[max(0, number - room) : number]
        context = [turn for window in before for turn in window.turns][-room:] if room else []

        def read(tx: Tx) -> WindowTurns:
            turns = tx.interactions.many([*context, *here.turns])
            earlier = [turns[turn_id] for turn_id in context if turn_id in turns]
            return read_turns(tx, earlier, [turns[turn_id] for turn_id in here.turns if turn_id in turns])

        return build_window(self.user_id, here.agent_version, await self.store.read(read))

    async def _consolidate(self, candidates: Sequence[ExtractedLearning], draft: Draft) -> Json:
        neighbourhoods = await _neighbours_in_draft(self.setup.embedder, candidates, draft.rows)
        return await consolidate(neighbourhoods, self.config, self.store, self.setup, OPERATION)

    async def keep(self, steps: Steps, draft: Draft, record: Callable[[Tx, int], object]) -> None:
        """Replaces the pending generation by the draft, in one transaction with `record`, which gets the row count."""

        def replace_pending(tx: Tx) -> None:
            rows = _still_grounded(tx, draft.rows)
            tx.learnings.remove(self.pending)
            _store_rows(tx, rows, self.setup.clock.now())
            for turns, reading in draft.readings:
                mark_unread(tx, turns, reading)
            record(tx, len(rows))

        async def keep() -> Json:
            await self.store.write(replace_pending)
            return {}

        await steps("keep", keep)

    @property
    def pending(self) -> LearningFilter:
        """What a rerun of this scope replaces. The scope's times do not matter: there is one pending generation."""
        version = self.scope.agent_version if self.kind is Kind.USER_PLAYBOOK else None
        place = LearningFilter(self.kind, user_id=self.user_id, agent_version=version, source=self.scope.source)
        return replace(place, statuses=(Status.PENDING,))


def _still_grounded(tx: Tx, rows: Sequence[Learning]) -> list[Learning]:
    """Without rows whose turns were deleted meanwhile: deleted words must not survive in a learning."""
    cited = {turn for row in rows for turn in row.details["source_interaction_ids"]}
    present = tx.interactions.many(sorted(cited)).keys()
    return [row for row in rows if present >= set(row.details["source_interaction_ids"])]


def _store_rows(tx: Tx, rows: Sequence[Learning], now: int) -> None:
    if not rows:
        return
    events = []
    for number, row in zip(tx.learnings.add(rows), rows, strict=True):
        reason = f"rerun: learned from turns {', '.join(map(str, row.details['source_interaction_ids']))}"
        learner = row.details["learner"]
        events.append(LineageEvent(number, row.kind, "learned", now, learner, reason, to_status=row.status))
    tx.learnings.note(*events)


async def _neighbours_in_draft(
    embedder: Embedder, candidates: Sequence[ExtractedLearning], rows: Sequence[Learning]
) -> list[Neighbourhood]:
    """The rows of the draft near each candidate, nearest first."""
    if not rows:
        return [Neighbourhood(candidate, ()) for candidate in candidates]
    vectors = await embedder.embed([*(candidate.text for candidate in candidates), *(row.text for row in rows)])
    cosines = vectors[: len(candidates)] @ vectors[len(candidates) :].T
    neighbourhoods = []
    for candidate, row_cosines in zip(candidates, cosines.tolist(), strict=True):
        near = [Neighbour(row, cosine) for row, cosine in zip(rows, row_cosines, strict=True) if cosine >= NEAR]
        near.sort(key=lambda neighbour: (-neighbour.similarity, neighbour.learning.id))
        neighbourhoods.append(Neighbourhood(candidate, tuple(near[:MOST_NEIGHBOURS])))
    return neighbourhoods


@dataclass(frozen=True)
class RerunTask:
    """What is learned once more, and the operation that reports its progress."""

    operation_id: str
    org_id: str
    kind: Kind
    scope: TurnScope

    @classmethod
    def read(cls, data: Json) -> "RerunTask":
        unread = data["scope"].get("only_unread")
        within = TimeRange(**data["scope"]["within"])
        scope = TurnScope(**{**data["scope"], "within": within, "only_unread": Kind(unread) if unread else None})
        return cls(data["operation_id"], data["org_id"], Kind(data["kind"]), scope)


@dataclass
class RerunWorker:
    """Begins reruns, and carries them out."""

    database: Database
    work: Work
    clock: Clock
    setup_for: SetupFor
    stalls: StallMonitor
    pause: Pause = asyncio.sleep
    tasks: BackgroundTasks = field(default_factory=BackgroundTasks)

    def register(self) -> None:
        self.work.register(WORKFLOW, self._rerun)

    async def begin(self, store: Store, kind: Kind, scope: TurnScope, params: Json) -> str:
        """Begins a rerun; returns the id of its operation. Raises what `begin_generation` raises."""
        await self.work.ready()
        operation_id, now = str(uuid4()), self.clock.now()
        await store.write(lambda tx: begin_generation(tx, kind, scope, params, operation_id, now))
        task = RerunTask(operation_id, store.org_id, kind, scope)
        key = f"rerun:{store.org_id}:{operation_id}"
        await self.work.enqueue(WORKFLOW, key, asdict(task), lane=f"rerun:{store.org_id}/{kind}")
        self.tasks.start(operations.fail_with_job(self.work, store, self.clock, key, operation_id))
        return operation_id

    async def _rerun(self, steps: Steps, data: Json) -> Json:
        task = RerunTask.read(data)
        store = self.database.of(task.org_id)
        operation = OperationRun(store, self.clock, task.operation_id, is_within_budget)
        return await operation.run(lambda: self._all_users(steps, task, store, operation))

    async def _all_users(self, steps: Steps, task: RerunTask, store: Store, operation: OperationRun) -> bool:
        """Reruns one user after the other; False when somebody cancelled."""

        async def read_users() -> Json:
            return {"users": await store.read(lambda tx: tx.interactions.users(task.scope))}

        users = (await steps("users", read_users))["users"]
        config = await store.read(stored_config)
        for number, user_id in enumerate(users):
            user_steps = with_retries(steps, str(number), store, self.clock, OPERATION, self.pause)
            try:
                user = UserRerun(task.kind, user_id, task.scope, config, store, self.setup_for(config))
                if not await self._one_user(user_steps, user, operation):
                    return False
            except ProviderError as error:
                if isinstance(error, ProviderRefused):
                    await self.stalls.provider_refused(store, error)
                await operation.record_user(user_id, error=str(error))
                if isinstance(error, ProviderRefused):
                    raise
        return True

    async def _one_user(self, steps: Steps, user: UserRerun, operation: OperationRun) -> bool:
        windows, draft = await user.windows(steps), Draft()
        for number in range(len(windows)):
            if not await operation.heartbeat(user.user_id):
                return False
            draft = await user.learn(steps, number, windows, draft)
        turns, now = sum(len(window.turns) for window in windows), self.clock.now()

        def record(tx: Tx, count: int) -> None:
            stats = {"total_generated": count, "total_interactions_processed": turns}
            operation.note_user(tx, user.user_id, now, stats=stats)

        await user.keep(steps, draft, record)
        return True
