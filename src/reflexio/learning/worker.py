"""The durable workflow that learns one window: extract, consolidate, keep.

The last step stores the learnings and marks the turns as learned in one transaction, under a key that exists once:
a repeated window finds its work done.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from pydantic import ConfigDict, TypeAdapter

from reflexio.errors import InvalidRequest, ProviderRefused, ProviderUnavailable, ReflexioError
from reflexio.jobs.retry import LONGEST_BACKOFF, LONGEST_PROBE, backoff
from reflexio.jobs.token_budget import record_spend
from reflexio.learning.consolidate import Origin, apply_decisions, find_neighbours, new_learning, without_duplicates
from reflexio.learning.evidence import grounded
from reflexio.learning.limits import limited_decision, within_limits
from reflexio.learning.stall import StallMonitor
from reflexio.learning.window import (
    WindowTurns,
    automatic_types,
    build_window,
    join_types,
    kinds,
    manual_types,
    read_turns,
)
from reflexio.models.config import Config
from reflexio.models.extraction import Decision, ExtractedLearning, Neighbourhood, Spend, Window
from reflexio.models.learning import Kind, Status
from reflexio.organisations.configuration import stored_config
from reflexio.ports.clock import Clock
from reflexio.ports.embedding import Embedder
from reflexio.ports.learner import Learner
from reflexio.ports.storage import Database, LearnedWindow, Store, Tx
from reflexio.ports.work import Json, Steps, Work
from reflexio.retrieval.immediate import ImmediateEmbedder
from reflexio.retrieval.scope import ScopeClassifier

WORKFLOW = "learn"
DEFERRED = ConfigDict(defer_build=True)
CANDIDATES = TypeAdapter(tuple[ExtractedLearning, ...], config=DEFERRED)
DECISIONS = TypeAdapter(tuple[Decision, ...], config=DEFERRED)
ADD = Decision("add")
MOST_ATTEMPTS = 6


@dataclass(frozen=True)
class WindowTask:
    """One window to learn: its new turns, and where they come from.

    `by_hand` is the kind of learnings that a manual run asked for; it is empty for a window that is due.
    """

    key: str
    org_id: str
    user_id: str
    turns: tuple[int, ...]
    agent_version: str
    source: str
    request_id: str
    by_hand: str = ""

    @property
    def lane(self) -> str:
        """The windows of one user run one after the other."""
        return lane_of(self.org_id, self.user_id)

    def json(self) -> Json:
        return asdict(self)

    @classmethod
    def read(cls, data: Json) -> "WindowTask":
        return cls(**{**data, "turns": tuple(data["turns"])})


def lane_of(org_id: str, user_id: str) -> str:
    return f"{org_id}/{user_id}"


@dataclass(frozen=True)
class LearnerSetup:
    """What learning with one configuration uses: the learner, the embedder, the clock, and who decides scopes."""

    learner: Learner
    embedder: Embedder
    clock: Clock
    scopes: ScopeClassifier


SetupFor = Callable[[Config], LearnerSetup]


def setup_or_refusal(setup_for: SetupFor, config: Config) -> LearnerSetup:
    """The setup for a configuration. Raises ProviderRefused when it names a model that does not exist."""
    try:
        return setup_for(config)
    except InvalidRequest as error:  # windows wait until the configuration is corrected
        raise ProviderRefused(str(error), reason="auth") from error


@dataclass
class LearningWorker:
    """Learns windows, one durable job each."""

    database: Database
    clock: Clock
    setup_for: SetupFor
    stalls: StallMonitor

    def register(self, work: Work) -> None:
        work.register(WORKFLOW, self._learn)

    async def _learn(self, steps: Steps, data: Json) -> Json:
        task = WindowTask.read(data)
        store = self.database.of(task.org_id)
        config = await store.read(stored_config)
        try:
            counts = await learn_window(steps, task, store, config, setup_or_refusal(self.setup_for, config))
        except ReflexioError as error:
            await fail(task, store, self.clock, error)
            if isinstance(error, ProviderRefused):
                await self.stalls.provider_refused(store, error)
            raise
        await self.stalls.provider_works(store)
        return dict(counts)


async def learn_window(
    steps: Steps, task: WindowTask, store: Store, config: Config, setup: LearnerSetup
) -> dict[str, int]:
    """Learns a window once, however often it is called; returns how many learnings were added and updated."""
    extracted = await steps("extract", lambda: _extract(task, store, config, setup))
    decided = await steps("consolidate", lambda: _consolidate(task, store, config, setup, extracted))
    return await steps("keep", lambda: _keep(task, store, setup, decided))


async def _extract(task: WindowTask, store: Store, config: Config, setup: LearnerSetup) -> Json:
    def read(tx: Tx) -> tuple[WindowTurns, bool]:
        unlearned = tx.interactions.unlearned_among(task.turns)
        # After a crash, the windows of before and after it may share turns: the first window takes them.
        new = tx.interactions.many(task.turns if task.by_hand else sorted(unlearned))
        room = max(0, config.window_size - len(task.turns))
        earlier = tx.interactions.before(task.user_id, min(task.turns), room) if room else []
        turns = read_turns(tx, earlier, [new[turn_id] for turn_id in task.turns if turn_id in new])
        return turns, bool(unlearned)

    turns, has_unlearned = await store.read(read)
    window = build_window(task.user_id, task.agent_version, turns)
    return await extract(window, _types_for(task, config, has_unlearned=has_unlearned), store, setup)


def _types_for(task: WindowTask, config: Config, *, has_unlearned: bool) -> Config:
    automatic = automatic_types(config, task.source)
    if not task.by_hand:
        return automatic
    manual = manual_types(config, task.source, Kind(task.by_hand))
    # The turns count as learned afterwards: what new ones would have taught automatically must not be lost.
    return join_types(config, manual, automatic) if has_unlearned else manual


async def extract(window: Window, config: Config, store: Store, setup: LearnerSetup, operation: str = "learn") -> Json:
    """What the learner extracts from a window, of all configured types, with evidence."""
    wanted_kinds = kinds(config)
    if not any(turn.is_new for turn in window.turns) or not wanted_kinds:
        return {"candidates": [], "counts": {}, "kinds": [], "unread": []}
    extraction = await setup.learner.extract(window, config, wanted_kinds)
    await record_spend(store, extraction.spend, setup.clock, operation)
    assessing = {playbook.playbook_name for playbook in config.playbook_configs if playbook.metadata_definition_prompt}
    kept, dropped = grounded(window, extraction.candidates, assessing)
    limited = within_limits(without_duplicates(kept), sum(turn.is_new for turn in window.turns))
    candidates = await setup.scopes.complete(limited.candidates)
    counts = {"ungrounded": dropped, "unusable": extraction.unusable, "shortened": limited.shortened}
    counts |= {"refused": limited.refused}
    return {
        "candidates": CANDIDATES.dump_python(tuple(candidates), mode="json"),
        "counts": counts,
        "kinds": sorted(wanted_kinds),
        "unread": list(extraction.unread),
    }


async def _consolidate(task: WindowTask, store: Store, config: Config, setup: LearnerSetup, extracted: Json) -> Json:
    candidates = CANDIDATES.validate_python(extracted["candidates"])
    neighbourhoods = await find_neighbours(store, setup.embedder, task.user_id, candidates, Status.CURRENT)
    return {**extracted, **await consolidate(neighbourhoods, config, store, setup)}


async def consolidate(
    neighbourhoods: list[Neighbourhood], config: Config, store: Store, setup: LearnerSetup, operation: str = "learn"
) -> Json:
    """A decision for each candidate. The learner is asked only about those that have neighbours."""
    questions = [neighbourhood for neighbourhood in neighbourhoods if neighbourhood.neighbours]
    answered: tuple[Decision, ...] = ()
    if questions:
        consolidation = await setup.learner.consolidate(questions, config)
        await record_spend(store, consolidation.spend, setup.clock, operation)
        answered = consolidation.decisions
    answers = iter(answered)
    decisions = [
        limited_decision(next(answers, ADD), near.candidate) if near.neighbours else _decide_alone(near)
        for near in neighbourhoods
    ]
    return {"decisions": DECISIONS.dump_python(tuple(decisions), mode="json")}


def _decide_alone(neighbourhood: Neighbourhood) -> Decision:
    """Nothing is stored near it: there is nothing to forget, and nothing to take back."""
    candidate = neighbourhood.candidate
    return Decision("drop", reason="nothing is stored about it") if candidate.forget or candidate.only_replaces else ADD


async def _keep(task: WindowTask, store: Store, setup: LearnerSetup, decided: Json) -> Json:
    now, learner = setup.clock.now(), setup.learner
    candidates = CANDIDATES.validate_python(decided["candidates"])
    decisions = DECISIONS.validate_python(decided["decisions"])
    place = (task.user_id, task.agent_version, task.source, task.request_id, task.turns)
    origin = Origin(*place, learner.name, learner.fingerprint)

    pairs = list(zip(candidates, decisions, strict=True))
    kept = [pair for pair in pairs if pair[1].action in ("add", "merge", "replace")]
    texts = [new_learning(candidate, decision, origin, now).text for candidate, decision in kept]
    vectors = await ImmediateEmbedder(setup.embedder).embed(texts)

    def keep(tx: Tx) -> dict[str, int]:
        if done := tx.windows.get(task.key):
            return done.counts
        # What was erased while a model read it stays erased.
        present = tx.interactions.many(task.turns) if task.by_hand else tx.interactions.unlearned_among(task.turns)
        grounded_still = [
            (candidate, decision)
            for candidate, decision in pairs
            if any(quote.turn_id in present for quote in candidate.evidence)
        ]
        counts = apply_decisions(tx, grounded_still, origin, now, vectors)
        _mark_pools(tx, grounded_still, task, now)
        # Steps that an earlier version has journalled hold no counts.
        counts |= decided.get("counts", {})
        tx.interactions.mark_learned(task.turns)
        mark_unread(tx, task.turns, decided)
        tx.users.clear_unlearned(task.user_id)
        learned = ("learned", task.turns, counts, learner.name, learner.fingerprint)
        tx.windows.add(LearnedWindow(task.key, task.user_id, *learned, created_at=now))
        return counts

    return dict(await store.write(keep))


def mark_unread(tx: Tx, turns: Sequence[int], extracted: Json) -> None:
    """Marks the turns that the learner did not understand, for the kinds it looked for; the others are read now."""
    # Results of extractions stored by an earlier version have neither entry.
    looked_for = [Kind(kind) for kind in extracted.get("kinds", ())]
    unread = set(extracted.get("unread", ()))
    tx.interactions.mark_unread([turn for turn in turns if turn in unread], looked_for)
    tx.interactions.mark_unread([turn for turn in turns if turn not in unread], looked_for, is_unread=False)


def _mark_pools(tx: Tx, decided: list[tuple[ExtractedLearning, Decision]], task: WindowTask, now: int) -> None:
    """Marks the pools of new user playbooks for aggregation, unless every publish they come from opted out."""
    kept = [candidate for candidate, decision in decided if decision.action in ("add", "merge", "replace")]
    names = Counter(candidate.name for candidate in kept if candidate.kind is Kind.USER_PLAYBOOK)
    if not names:
        return
    request_ids = {turn.request_id for turn in tx.interactions.many(task.turns).values()}
    requests = [request for request_id in request_ids if (request := tx.requests.get(request_id))]
    if requests and all(request.skip_aggregation for request in requests):
        return
    for name, count in names.items():
        tx.pools.mark(task.agent_version, name, count, now)


async def fail(task: WindowTask, store: Store, clock: Clock, error: Exception) -> None:
    """Schedules a failed window again; one that can never succeed is set aside, and its status says so."""
    now = clock.now()
    # Errors of embedders carry no spend.
    await record_spend(store, getattr(error, "spend", None) or Spend(), clock)
    if task.by_hand:
        return
    is_providers_fault = isinstance(error, ProviderRefused | ProviderUnavailable)

    def postpone(tx: Tx) -> None:
        waiting = tx.users.waiting(task.user_id)
        attempts = waiting.attempts if waiting else 0
        if not is_providers_fault and tx.windows.get(f"{task.key}:failed") is None:
            tx.windows.add(_failed_window(task, "failed", error, now))
        if is_providers_fault or _count_failures(tx, task) < MOST_ATTEMPTS:
            longest = LONGEST_PROBE if isinstance(error, ProviderRefused) else LONGEST_BACKOFF
            tx.users.postpone(task.user_id, now + backoff(attempts, longest), str(error))
            return
        tx.interactions.mark_learned(task.turns)
        tx.users.clear_unlearned(task.user_id)
        tx.windows.add(_failed_window(task, "set_aside", error, now))

    await store.write(postpone)


def _failed_window(task: WindowTask, state: str, error: Exception, now: int) -> LearnedWindow:
    key = f"{task.key}:{state}"
    return LearnedWindow(key, task.user_id, state, task.turns, {}, error=str(error)[:1000], created_at=now)


def _count_failures(tx: Tx, task: WindowTask) -> int:
    """How often the first turn of a window has failed through no fault of a provider."""
    windows = tx.windows.of_turns(task.user_id, task.turns[:1])
    return sum(window.state == "failed" for window in windows)
