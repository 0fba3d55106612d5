"""The durable workflow that learns one window: extract, consolidate, keep.

The last step stores the learnings and marks the turns as learned in one transaction, under a key that exists once:
a repeated window finds its work done.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic import ConfigDict, TypeAdapter

from reflexio.errors import (
    ContextTooLong,
    InvalidRequest,
    ProviderError,
    ProviderRefused,
    ReflexioError,
    UnreadableAnswer,
)
from reflexio.jobs.token_budget import record_spend
from reflexio.learning.consolidate import Origin, apply_decisions, find_neighbours, new_learning, without_duplicates
from reflexio.learning.evidence import grounded
from reflexio.learning.failure import fail, try_again, wait_for_provider
from reflexio.learning.finished_steps import PAID, PaidSteps, setup_of
from reflexio.learning.limits import limited_decision, within_limits
from reflexio.learning.stall import StallMonitor
from reflexio.learning.window import (
    WindowTask,
    WindowTurns,
    automatic_types,
    build_window,
    join_types,
    kinds,
    manual_types,
    read_turns,
    shortened,
)
from reflexio.models.config import Config
from reflexio.models.extraction import Decision, ExtractedLearning, Neighbourhood, Spend, Window
from reflexio.models.learning import Kind, Status
from reflexio.organisations.configuration import stored_config
from reflexio.ports.clock import Clock
from reflexio.ports.embedding import Embedder
from reflexio.ports.learner import Learner
from reflexio.ports.storage import Database, FinishedStep, LearnedWindow, Store, Tx
from reflexio.ports.work import Json, Steps, Work
from reflexio.retrieval.immediate import ImmediateEmbedder
from reflexio.retrieval.scope import ScopeClassifier

WORKFLOW = "learn"
DEFERRED = ConfigDict(defer_build=True)
CANDIDATES = TypeAdapter(tuple[ExtractedLearning, ...], config=DEFERRED)
DECISIONS = TypeAdapter(tuple[Decision, ...], config=DEFERRED)
ADD = Decision("add")


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
            setup = setup_or_refusal(self.setup_for, config)
        except ProviderRefused as error:
            await fail(task, store, self.clock, self.stalls, error)
            raise
        if await self.stalls.is_faulty(store):
            # A tiny question first: a whole window would be paid for in vain.
            try:
                await steps("check", lambda: _check(store, setup))
            except ProviderError as error:
                if await store.read(stored_config) != config:
                    await try_again(task, store, self.clock, error)
                else:
                    await wait_for_provider(task, store, self.clock, self.stalls, error)
                raise
        try:
            counts = await learn_window(steps, task, store, config, setup)
        except ReflexioError as error:
            if await store.read(stored_config) != config:
                await try_again(task, store, self.clock, error)
            else:
                await fail(task, store, self.clock, self.stalls, error, setup.learner.check, config)
            raise
        await self.stalls.provider_works(store)
        return dict(counts)


async def _check(store: Store, setup: LearnerSetup) -> Json:
    try:
        spend = await setup.learner.check()
    except UnreadableAnswer as error:
        spend = error.spend or Spend()
        if not spend.output_tokens:
            raise
        # It answers, if not to this question: the window will show more.
    await record_spend(store, spend, setup.clock)
    return {}


async def learn_window(
    steps: Steps, task: WindowTask, store: Store, config: Config, setup: LearnerSetup
) -> dict[str, int]:
    """Learns a window once, however often it is called; returns how many learnings were added and updated."""
    window, types, finished = await _read_window(task, store, config)
    paid = PaidSteps.of(steps, store, setup.clock, task, setup_of(setup.learner, types), finished)
    extracted = await extract(paid, "extract", window, types, store, setup)
    decided = await paid("consolidate", lambda: _consolidate(task, store, config, setup, extracted))
    return await steps("keep", lambda: _keep(task, store, setup, decided))


async def _read_window(task: WindowTask, store: Store, config: Config) -> tuple[Window, Config, list[FinishedStep]]:
    """The window, the types that apply to it, and what earlier attempts have finished."""

    def read(tx: Tx) -> tuple[WindowTurns, bool, list[FinishedStep]]:
        unlearned = tx.interactions.unlearned_among(task.turns)
        # After a crash, the windows of before and after it may share turns: the first window takes them.
        new = tx.interactions.many(task.turns if task.by_hand else sorted(unlearned))
        room = max(0, config.window_size - len(task.turns))
        earlier = tx.interactions.before(task.user_id, min(task.turns), room) if room else []
        turns = read_turns(tx, earlier, [new[turn_id] for turn_id in task.turns if turn_id in new])
        return turns, bool(unlearned), tx.windows.finished_steps(task.user_id)

    turns, has_unlearned, finished = await store.read(read)
    window = build_window(task.user_id, task.agent_version, turns)
    return window, _types_for(task, config, has_unlearned=has_unlearned), finished


def _types_for(task: WindowTask, config: Config, *, has_unlearned: bool) -> Config:
    automatic = automatic_types(config, task.source)
    if not task.by_hand:
        return automatic
    manual = manual_types(config, task.source, Kind(task.by_hand))
    # The turns count as learned afterwards: what new ones would have taught automatically must not be lost.
    return join_types(config, manual, automatic) if has_unlearned else manual


async def extract(
    steps: Steps,
    name: str,
    window: Window,
    config: Config,
    store: Store,
    setup: LearnerSetup,
    operation: str = "learn",
) -> Json:
    """What the learner extracts from a window, of all configured types, with evidence.

    A window that the model cannot read at once is read in parts, each a step of its own.
    """
    try:
        return await steps(name, lambda: _extract(window, config, store, setup, operation))
    except ContextTooLong as error:
        parts = shortened(window)
        if not parts:
            raise
        await record_spend(store, error.spend or Spend(), setup.clock, operation)
    numbered = enumerate(parts, start=1)
    read = [await extract(steps, f"{name}.{n}", part, config, store, setup, operation) for n, part in numbered]
    candidates = [candidate for part in read for candidate in CANDIDATES.validate_python(part["candidates"])]
    counts = sum((Counter[str](part["counts"]) for part in read), Counter[str]())
    entries = CANDIDATES.dump_python(tuple(without_duplicates(candidates)), mode="json")
    marks = {name: sorted({mark for part in read for mark in part[name]}) for name in ("kinds", "unread")}
    return {"candidates": entries, "counts": dict(counts), **marks}


async def _extract(window: Window, config: Config, store: Store, setup: LearnerSetup, operation: str) -> Json:
    wanted_kinds = kinds(config)
    if not any(turn.is_new for turn in window.turns) or not wanted_kinds:
        return {"candidates": [], "counts": {}, "kinds": [], "unread": []}
    extraction = await setup.learner.extract(window, config, wanted_kinds)
    await record_spend(store, extraction.spend, setup.clock, operation)
    assessing = {playbook.playbook_name for playbook in config.playbook_configs if playbook.metadata_definition_prompt}
    # Long turns take long to search through; callers are answered meanwhile.
    kept, dropped = await asyncio.to_thread(grounded, window, extraction.candidates, assessing)
    limited = within_limits(without_duplicates(kept), sum(turn.is_new for turn in window.turns))
    now = setup.clock.now()
    holding = [candidate for candidate in limited.candidates if candidate.expires_at(now) > now]
    candidates = await setup.scopes.complete(holding)
    counts = {"ungrounded": dropped, "unusable": extraction.unusable, "shortened": limited.shortened}
    counts |= {"refused": limited.refused, "expired": len(limited.candidates) - len(holding)}
    return {
        "candidates": CANDIDATES.dump_python(tuple(candidates), mode="json"),
        "counts": counts,
        "kinds": sorted(wanted_kinds),
        "unread": list(extraction.unread),
        PAID: extraction.spend.calls,
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
    calls = 0
    if questions:
        consolidation = await setup.learner.consolidate(questions, config)
        await record_spend(store, consolidation.spend, setup.clock, operation)
        answered, calls = consolidation.decisions, consolidation.spend.calls
    answers = iter(answered)
    decisions = [
        limited_decision(next(answers, ADD), near.candidate) if near.neighbours else _decide_alone(near)
        for near in neighbourhoods
    ]
    return {"decisions": DECISIONS.dump_python(tuple(decisions), mode="json"), PAID: calls}


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
        tx.windows.drop_steps(task.user_id, task.turns)
        if tx.interactions.many(task.turns):  # else all were erased: the row would name their user again
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
