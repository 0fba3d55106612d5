"""Learning one window, in steps that survive a crash: extract, consolidate, keep.

The data says what is to be learned: the turns of a window are marked in the same transaction that stores what
was learned, under a key that exists once. Whatever is repeated finds its work done.
"""

from collections import Counter
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from pydantic import TypeAdapter

from reflexio.errors import ProviderRefused, ProviderUnavailable
from reflexio.learning.consolidate import Origin, carry_out, distinct, neighbourhoods
from reflexio.learning.evidence import grounded
from reflexio.learning.window import LONGEST_BACKOFF, applicable, by_hand, joined, kinds, window
from reflexio.models.config import Config
from reflexio.models.interaction import Interaction
from reflexio.models.learned import Candidate, Decision, Neighbourhood, Spend, Window
from reflexio.models.learning import Kind
from reflexio.models.status import Status
from reflexio.ports.clock import Clock
from reflexio.ports.embedding import Embedder
from reflexio.ports.learner import Learner
from reflexio.ports.storage import LearnedWindow, Store, Tx
from reflexio.ports.work import Json, Steps

CANDIDATES = TypeAdapter(tuple[Candidate, ...])
DECISIONS = TypeAdapter(tuple[Decision, ...])
ADD = Decision("add")
BACKOFF, LONGEST_PROBE, MOST_ATTEMPTS = 2, 20, 6


@dataclass(frozen=True)
class Task:
    """One window to learn: its new turns, and where they come from.

    `by_hand` is the kind of learnings that somebody asked for; a window that is due by itself has none.
    """

    key: str
    org_id: str
    user_id: str
    turns: tuple[int, ...]
    agent_version: str
    source: str
    request_id: str
    by_hand: str = ""

    def json(self) -> Json:
        return asdict(self)

    @classmethod
    def read(cls, data: Json) -> "Task":
        return cls(**{**data, "turns": tuple(data["turns"])})


@dataclass(frozen=True)
class School:
    """What learning needs: the learner and the embedder in use, and the time."""

    learner: Learner
    embedder: Embedder
    clock: Clock


async def learn(steps: Steps, task: Task, store: Store, config: Config, school: School) -> dict[str, int]:
    """Learns a window once, however often it is asked for; tells what was added and updated."""
    found = await steps("extract", lambda: _extract(task, store, config, school))
    decided = await steps("consolidate", lambda: _consolidate(task, store, config, school, found))
    return await steps("keep", lambda: _keep(task, store, school, decided))


async def account(store: Store, spend: Spend, clock: Clock, operation: str = "learn") -> None:
    """What a call cost is written down at once, whatever becomes of its answer."""
    if spend.calls:
        day = datetime.fromtimestamp(clock.now(), UTC).date().isoformat()
        await store.write(lambda tx: tx.spending.add(day, operation, spend))


async def _extract(task: Task, store: Store, config: Config, school: School) -> Json:
    def look(tx: Tx) -> tuple[list[Interaction], list[Interaction], bool]:
        fresh = tx.interactions.fresh(task.turns)
        # After a crash, the windows of before and after it may share turns: the first to come takes them.
        new = tx.interactions.many(task.turns if task.by_hand else sorted(fresh))
        room = max(0, config.window_size - len(task.turns))
        earlier = tx.interactions.before(task.user_id, min(task.turns), room) if room else []
        return earlier, [new[each] for each in task.turns if each in new], bool(fresh)

    earlier, new, fresh = await store.read(look)
    seen = window(task.user_id, task.agent_version, earlier, new)
    return await find(seen, _wanted(task, config, fresh=fresh), store, school)


def _wanted(task: Task, config: Config, *, fresh: bool) -> Config:
    due = applicable(config, task.source)
    if not task.by_hand:
        return due
    asked = by_hand(config, task.source, Kind(task.by_hand))
    # Turns that nobody has learned from count as learned afterwards: what they would have taught must not be lost.
    return joined(config, asked, due) if fresh else asked


async def find(seen: Window, here: Config, store: Store, school: School, operation: str = "learn") -> Json:
    """What the learner finds in a window, of all that is configured here, and can prove."""
    wanted = kinds(here)
    if not any(turn.is_new for turn in seen.turns) or not wanted:
        return {"candidates": [], "dropped": 0}
    extraction = await school.learner.extract(seen, here, wanted)
    await account(store, extraction.spend, school.clock, operation)
    kept, dropped = grounded(seen, extraction.candidates)
    return {"candidates": CANDIDATES.dump_python(distinct(kept), mode="json"), "dropped": dropped}


async def _consolidate(task: Task, store: Store, config: Config, school: School, found: Json) -> Json:
    candidates = CANDIDATES.validate_python(found["candidates"])
    around = await neighbourhoods(store, school.embedder, task.user_id, candidates, Status.CURRENT)
    return {**found, **await settle(around, config, store, school)}


async def settle(
    around: list[Neighbourhood], config: Config, store: Store, school: School, operation: str = "learn"
) -> Json:
    """A decision for each candidate. The learner is asked only about those that have neighbours."""
    asked = [each for each in around if each.neighbours]
    answered: tuple[Decision, ...] = ()
    if asked:
        made = await school.learner.consolidate(asked, config)
        await account(store, made.spend, school.clock, operation)
        answered = made.decisions
    told = iter(answered)
    decisions = [next(told, ADD) if each.neighbours else _alone(each) for each in around]
    return {"decisions": DECISIONS.dump_python(tuple(decisions), mode="json")}


def _alone(found: Neighbourhood) -> Decision:
    return Decision("drop", reason="there is nothing to forget") if found.candidate.forget else ADD


async def _keep(task: Task, store: Store, school: School, decided: Json) -> Json:
    now = school.clock.now()
    candidates = CANDIDATES.validate_python(decided["candidates"])
    decisions = DECISIONS.validate_python(decided["decisions"])
    origin = Origin(
        task.user_id,
        task.agent_version,
        task.source,
        task.request_id,
        task.turns,
        school.learner.name,
        school.learner.fingerprint,
    )

    def keep(tx: Tx) -> dict[str, int]:
        if done := tx.windows.get(task.key):
            return done.counts
        # What was erased while a model read it stays erased.
        there = tx.interactions.many(task.turns) if task.by_hand else tx.interactions.fresh(task.turns)
        decided_on = list(zip(candidates, decisions, strict=True))
        grounded_still = [each for each in decided_on if any(quote.turn_id in there for quote in each[0].evidence)]
        counts = carry_out(tx, grounded_still, origin, now)
        _mark(tx, grounded_still, task, now)
        counts["ungrounded"] = int(decided.get("dropped", 0))
        tx.interactions.mark_learned(task.turns)
        tx.users.settle(task.user_id)
        learned = LearnedWindow(
            task.key, task.user_id, "learned", task.turns, counts, origin.learner, origin.fingerprint, created_at=now
        )
        tx.windows.add(learned)
        return counts

    return dict(await store.write(keep))


def _mark(tx: Tx, decided: list[tuple[Candidate, Decision]], task: Task, now: int) -> None:
    """New user playbooks are news for aggregation, unless every publish they come from says otherwise."""
    kept = [each for each, decision in decided if decision.action in ("add", "merge", "replace")]
    names = Counter(each.name for each in kept if each.kind is Kind.USER_PLAYBOOK)
    if not names:
        return
    sent = {turn.request_id for turn in tx.interactions.many(task.turns).values()}
    requests = [found for each in sent if (found := tx.requests.get(each))]
    if requests and all(each.skip_aggregation for each in requests):
        return
    for name, count in names.items():
        tx.pools.mark(task.agent_version, name, count, now)


async def fail(task: Task, store: Store, clock: Clock, error: Exception) -> None:
    """A window that failed is tried again later; one that can never succeed is set aside, in plain sight."""
    now = clock.now()
    # An error that counts no calls, such as that of an embedder, has no spend at all.
    await account(store, getattr(error, "spend", None) or Spend(), clock)
    if task.by_hand:
        return
    patient = isinstance(error, ProviderRefused | ProviderUnavailable)

    def postpone(tx: Tx) -> None:
        waiting = tx.users.waiting(task.user_id)
        attempts = waiting.attempts if waiting else 0
        if not patient and tx.windows.get(f"{task.key}:failed") is None:
            tx.windows.add(_failed(task, "failed", error, now))
        if patient or _failures(tx, task) < MOST_ATTEMPTS:
            longest = LONGEST_PROBE if isinstance(error, ProviderRefused) else LONGEST_BACKOFF
            pause = min(longest, BACKOFF * 2 ** min(attempts, 10))
            tx.users.postpone(task.user_id, now + pause, str(error))
            return
        tx.interactions.mark_learned(task.turns)
        tx.users.settle(task.user_id)
        tx.windows.add(_failed(task, "set_aside", error, now))

    await store.write(postpone)


def _failed(task: Task, state: str, error: Exception, now: int) -> LearnedWindow:
    key = f"{task.key}:{state}"
    return LearnedWindow(key, task.user_id, state, task.turns, {}, error=str(error)[:1000], created_at=now)


def _failures(tx: Tx, task: Task) -> int:
    """How often the first turn of a window has failed for a reason of its own; outages and refusals are nobody's."""
    tried = tx.windows.of_turns(task.user_id, task.turns[:1])
    return sum(each.state == "failed" for each in tried)
