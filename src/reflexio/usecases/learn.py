"""Learn: windows that are due are learned in the background; a caller who waits gets exactly what was sent.

The database says who waits; the engine only decides when. Users run side by side, each one in order.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from reflexio.errors import InvalidRequest, ProviderRefused, ReflexioError, StorageTaken
from reflexio.learning.window import Plan, is_due, is_ripe, plan, plans
from reflexio.learning.workflow import BACKOFF, LONGEST_PROBE, School, Task, fail, learn
from reflexio.models.config import Config
from reflexio.models.interaction import MOST_INTERACTIONS, PublishResponse
from reflexio.models.stall import StallReason
from reflexio.ports.clock import Clock
from reflexio.ports.storage import Database, Store, Tx, Waiting
from reflexio.ports.work import Job, Json, Steps, Work
from reflexio.usecases import stall
from reflexio.usecases.configure import stored
from reflexio.usecases.spend import allowed

log = logging.getLogger("reflexio.learn")

WORKFLOW = "learn"
IDLE = 0.25
"""Seconds between looks at who waits."""
MOST_WAITING = 200
AT_ONCE, IN_A_CROWD = 32, 1
"""Windows under way at the most: few enough that little is left to do when a crowd of callers comes, and then."""


BUDGET = "the daily token budget is used up"


@dataclass(frozen=True)
class Refused:
    """How often a provider refused an organisation since it last worked, and until when nobody asks it again."""

    times: int
    until: int
    config: Config


@dataclass
class Classroom:
    """Learning, connected: who learns (`school`, by an organisation's configuration), and what runs the windows."""

    database: Database
    work: Work
    clock: Clock
    school: Callable[[Config], School]
    _busy: Counter[str] = field(default_factory=Counter)
    _room: asyncio.Event = field(default_factory=asyncio.Event)
    """Half of what was under way is done: more may begin before the next look."""
    _after: Waiting | None = None
    _refused: dict[str, "Refused"] = field(default_factory=dict)
    _watching: set["asyncio.Task[None]"] = field(default_factory=set)

    @property
    def is_learning(self) -> bool:
        return bool(self._busy)

    def register(self) -> None:
        self.work.register(WORKFLOW, self._learn)

    async def _learn(self, steps: Steps, data: Json) -> Json:
        task = Task.read(data)
        store = self.database.of(task.org_id)
        config = await store.read(stored)
        try:
            counts = await learn(steps, task, store, config, self.taught_by(config))
        except ReflexioError as error:
            await fail(task, store, self.clock, error)
            if isinstance(error, ProviderRefused):
                await self.refused(store, error)
            raise
        await self.resume(store)
        return dict(counts)

    def taught_by(self, config: Config) -> School:
        """Who learns with this configuration. Raises ProviderRefused when it names a model that cannot be."""
        try:
            return self.school(config)
        except InvalidRequest as error:  # a model that cannot be: windows wait until the configuration is mended
            raise ProviderRefused(str(error), reason="auth") from error

    async def refused(self, store: Store, error: ProviderRefused) -> None:
        """Learning waits until the key or the bill is in order."""
        config = await store.read(stored)
        now = self.clock.now()
        times = self._refused[store.org_id].times + 1 if store.org_id in self._refused else 0
        pause = min(LONGEST_PROBE, BACKOFF * 2 ** min(times, 10))
        self._refused[store.org_id] = Refused(times, now + pause, config)
        reason: StallReason = "billing_error" if error.reason == "billing" else "auth_error"
        await store.write(lambda tx: stall.enter(tx, reason, str(error), now))

    async def resume(self, store: Store) -> None:
        """The provider works: whoever waited for it may go on at once."""

        self._refused.pop(store.org_id, None)

        def wake(tx: Tx) -> None:
            if stall.clear(tx):
                tx.users.wake()

        if await store.read(stall.state):
            await store.write(wake)

    async def keep_learning(self, is_crowded: Callable[[], bool]) -> None:
        """Until cancelled. Whoever calls goes first: while many calls come in, few windows are begun at a time."""
        while True:
            self._room.clear()
            try:
                await self.learn_waiting(IN_A_CROWD if is_crowded() else AT_ONCE)
            except ReflexioError as error:
                log.error("learning waits: %s", error)
            with suppress(TimeoutError):
                async with asyncio.timeout(IDLE):
                    await (asyncio.sleep(IDLE) if is_crowded() else self._room.wait())

    async def learn_waiting(self, most: int = MOST_WAITING) -> int:
        """Asks for a window of every user who is due, while fewer than `most` are under way; tells how many."""
        begun = 0
        under_way = sum(1 for count in self._busy.values() if count)
        # Page after page, round and round: those who wait for long without being due hide nobody.
        page = await self.database.backlog(MOST_WAITING, after=self._after)
        self._after = page[-1] if len(page) == MOST_WAITING else None
        for waiting in await self._ripe(page):
            if begun + under_way < most and not self._busy[_lane(waiting.org_id, waiting.user_id)]:
                begun += await self._begin(waiting)
        return begun

    async def _ripe(self, page: Sequence[Waiting]) -> list[Waiting]:
        """Those whose turn it may be, by one look at each organisation: most wait for more to be said."""
        now, ripe = self.clock.now(), list[Waiting]()
        for org_id in dict.fromkeys(each.org_id for each in page):
            mine = [each for each in page if each.org_id == org_id]

            def look(tx: Tx, mine: list[Waiting] = mine) -> list[Waiting]:
                config, backlogs = stored(tx), tx.interactions.backlogs([each.user_id for each in mine])
                left = [(each, backlogs.get(each.user_id)) for each in mine]
                return [each for each, backlog in left if not backlog or is_ripe(backlog, each, config, now)]

            ripe += await self.database.of(org_id).read(look)
        return ripe

    async def _begin(self, waiting: Waiting) -> int:
        store, now = self.database.of(waiting.org_id), self.clock.now()

        def look(tx: Tx) -> Plan | None:
            config = stored(tx)
            if tx.stalls.get() and not self._may_probe(waiting.org_id, config, now):
                return None
            if not allowed(tx, config, now):
                return None
            turns = tx.interactions.unlearned(waiting.user_id, config.window_size)
            if not turns:
                return Plan((), "", "", "")
            return plan(turns, config) if is_due(turns, waiting, config, now) else None

        due = await store.read(look)
        lane = _lane(waiting.org_id, waiting.user_id)
        if due is None or self._busy[lane]:
            return 0
        if not due.turns:
            await store.write(lambda tx: tx.users.settle(waiting.user_id))
            return 0
        task = _task(waiting.org_id, waiting.user_id, due, attempt=waiting.attempts)
        self._busy[lane] += 1
        watch = asyncio.create_task(self._see_through(task, lane, waiting.attempts))
        self._watching.add(watch)
        watch.add_done_callback(self._watching.discard)
        return 1

    def _may_probe(self, org_id: str, config: Config, now: int) -> bool:
        """While learning is stalled, one window at a time finds out whether the provider works again: now and then,
        and at once with another configuration."""
        if any(count and lane.startswith(f"{org_id}/") for lane, count in self._busy.items()):
            return False
        refused = self._refused.get(org_id)
        return refused is None or refused.until <= now or refused.config != config

    async def _see_through(self, task: Task, lane: str, attempts: int) -> None:
        try:
            await self.enqueue(task)
            job = await self.work.wait(task.key)
            if job.state != "done":
                log.warning("a window of %s failed: %s", lane, job.error)
                await self._account_for(task, attempts, job)
        except ReflexioError as error:
            log.info("a window of %s waits: %s", lane, error)
        finally:
            self._let_go(lane)

    def _let_go(self, lane: str) -> None:
        self._busy[lane] -= 1
        if not self._busy[lane]:
            del self._busy[lane]
        if len(self._busy) == AT_ONCE // 2:
            self._room.set()

    async def _account_for(self, task: Task, attempts: int, job: Job) -> None:
        """A job that ended without a word of its own, by a defect or with its process, has failed all the same."""
        store = self.database.of(task.org_id)
        waiting = await store.read(lambda tx: tx.users.waiting(task.user_id))
        if waiting is not None and waiting.attempts == attempts and waiting.unlearned_since:
            await fail(task, store, self.clock, ReflexioError(job.error or job.state))

    @contextmanager
    def attended(self, org_id: str, user_id: str) -> Iterator[None]:
        """Meanwhile the background leaves a user alone: what a caller waits for is learned by that call."""
        lane = _lane(org_id, user_id)
        self._busy[lane] += 1
        try:
            yield
        finally:
            self._let_go(lane)

    async def learn_now(self, store: Store, user_id: str, answer: PublishResponse) -> PublishResponse:
        """Learns exactly the turns of one publish, and answers with what came of it."""

        def look(tx: Tx) -> tuple[list[Plan], int]:
            turns = tx.interactions.unlearned(user_id, MOST_INTERACTIONS, request_id=answer.request_id)
            waiting = tx.users.waiting(user_id)
            return plans(turns, stored(tx)) if turns else [], waiting.attempts if waiting else 0

        try:
            await self.work.ready()
        except StorageTaken:
            return answer.model_copy(update={"learning_reason": "another server learns from this data"})
        counts: dict[str, int] = {}
        made, attempts = await store.read(look)
        for each in made:
            if not await store.read(lambda tx: allowed(tx, stored(tx), self.clock.now())):
                return answer.model_copy(update={"learning_reason": BUDGET, **_shown(counts)})
            task = _task(store.org_id, user_id, each, attempt=attempts)
            job = await self._ended(task)
            if job.state != "done":
                await self._account_for(task, attempts, job)
                told = {"learning_status": "failed", "learning_reason": job.error or job.state}
                return answer.model_copy(update={**told, **_shown(counts)})
            for name, count in (job.result or {}).items():
                counts[name] = counts.get(name, 0) + int(count)
        done = {"learning_status": "done", "learning_reason": "covered"}
        return answer.model_copy(update={**done, **_shown(counts)})

    async def _ended(self, task: Task) -> Job:
        await self.enqueue(task)
        return await self.work.wait(task.key)

    async def enqueue(self, task: Task) -> None:
        """Behind all else that is to be learned of this user."""
        await self.work.enqueue(WORKFLOW, task.key, task.json(), lane=_lane(task.org_id, task.user_id))


def _task(org_id: str, user_id: str, due: Plan, *, attempt: int) -> Task:
    key = f"learn:{org_id}:{user_id}:{due.turns[0]}-{due.turns[-1]}:{attempt}"
    return Task(key, org_id, user_id, due.turns, due.agent_version, due.source, due.request_id)


def _lane(org_id: str, user_id: str) -> str:
    return f"{org_id}/{user_id}"


def _shown(counts: dict[str, int]) -> dict[str, int]:
    names = ("profiles_added", "profiles_updated", "playbooks_added", "playbooks_updated")
    return {name: counts.get(name, 0) for name in names}
