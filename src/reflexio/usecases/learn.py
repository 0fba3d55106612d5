"""Learn: windows that are due are learned in the background; a caller who waits gets exactly what was sent.

The database says who waits; the engine only decides when. Users run side by side, each one in order.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from reflexio.errors import ProviderRefused, ReflexioError
from reflexio.learning.window import Plan, is_due, plan, plans
from reflexio.learning.workflow import School, Task, fail, learn
from reflexio.models.config import Config
from reflexio.models.interaction import MOST_INTERACTIONS, PublishResponse
from reflexio.models.stall import StallReason
from reflexio.ports.clock import Clock
from reflexio.ports.storage import Database, Store, Tx, Waiting
from reflexio.ports.work import Json, Steps, Work
from reflexio.usecases import stall
from reflexio.usecases.configure import stored
from reflexio.usecases.spend import allowed

log = logging.getLogger("reflexio.learn")

WORKFLOW = "learn"
IDLE = 0.25
"""Seconds between looks at who waits."""
MOST_WAITING = 200


@dataclass
class Classroom:
    """Learning, connected: who learns (`school`, by an organisation's configuration), and what runs the windows."""

    database: Database
    work: Work
    clock: Clock
    school: Callable[[Config], School]
    open: asyncio.Event = field(default_factory=asyncio.Event)
    _busy: set[str] = field(default_factory=set)
    _watching: set["asyncio.Task[None]"] = field(default_factory=set)

    def register(self) -> None:
        self.work.register(WORKFLOW, self._learn)

    async def _learn(self, steps: Steps, data: Json) -> Json:
        task = Task.read(data)
        store = self.database.of(task.org_id)
        config = await store.read(stored)
        try:
            counts = await learn(steps, task, store, config, self.school(config))
        except ReflexioError as error:
            await fail(task, store, self.clock, error)
            if isinstance(error, ProviderRefused):
                await self.refused(store, error)
            raise
        await self._resume(store)
        return dict(counts)

    async def refused(self, store: Store, error: ProviderRefused) -> None:
        """Learning waits until the key or the bill is in order."""
        now = self.clock.now()
        reason: StallReason = "billing_error" if error.reason == "billing" else "auth_error"
        await store.write(lambda tx: stall.enter(tx, reason, str(error), now))

    async def _resume(self, store: Store) -> None:
        """The provider works: whoever waited for it may go on at once."""

        def wake(tx: Tx) -> None:
            if stall.clear(tx):
                tx.users.wake()

        if await store.read(stall.state):
            await store.write(wake)

    async def keep_learning(self) -> None:
        """Until cancelled."""
        while True:
            try:
                await self.learn_waiting()
            except ReflexioError as error:
                log.error("learning waits: %s", error)
            await asyncio.sleep(IDLE)

    async def learn_waiting(self) -> int:
        """Asks for a window of every user who is due; tells how many."""
        begun = 0
        for waiting in await self.database.backlog(MOST_WAITING):
            if _lane(waiting.org_id, waiting.user_id) not in self._busy:
                begun += await self._begin(waiting)
        return begun

    async def _begin(self, waiting: Waiting) -> int:
        store, now = self.database.of(waiting.org_id), self.clock.now()

        def look(tx: Tx) -> Plan | None:
            config = stored(tx)
            if tx.stalls.get() and self._is_probing(waiting.org_id):
                return None
            if not allowed(tx, config, now):
                return None
            turns = tx.interactions.unlearned(waiting.user_id, config.window_size)
            if not turns:
                return Plan((), "", "", "")
            return plan(turns, config) if is_due(turns, waiting, config, now) else None

        due = await store.read(look)
        if due is None:
            return 0
        if not due.turns:
            await store.write(lambda tx: tx.users.settle(waiting.user_id))
            return 0
        task = _task(waiting.org_id, waiting.user_id, due, attempt=waiting.attempts)
        lane = _lane(task.org_id, task.user_id)
        self._busy.add(lane)
        await self.work.enqueue(WORKFLOW, task.key, task.json(), lane=lane)
        watch = asyncio.create_task(self._until_done(task.key, lane))
        self._watching.add(watch)
        watch.add_done_callback(self._watching.discard)
        return 1

    def _is_probing(self, org_id: str) -> bool:
        """While learning is stalled, one window at a time finds out whether the provider works again."""
        return any(lane.startswith(f"{org_id}/") for lane in self._busy)

    async def _until_done(self, key: str, lane: str) -> None:
        try:
            job = await self.work.wait(key)
            if job.state == "failed":
                log.warning("a window of %s failed: %s", lane, job.error)
        finally:
            self._busy.discard(lane)

    async def learn_now(self, store: Store, user_id: str, answer: PublishResponse) -> PublishResponse:
        """Learns exactly the turns of one publish, and answers with what came of it."""

        def look(tx: Tx) -> list[Plan]:
            turns = tx.interactions.unlearned(user_id, MOST_INTERACTIONS, request_id=answer.request_id)
            return plans(turns, stored(tx)) if turns else []

        await self.open.wait()
        counts: dict[str, int] = {}
        for each in await store.read(look):
            task = _task(store.org_id, user_id, each, attempt=0)
            await self.enqueue(task)
            job = await self.work.wait(task.key)
            if job.state != "done":
                told = {"learning_status": "failed", "learning_reason": job.error or job.state}
                return answer.model_copy(update={**told, **_shown(counts)})
            for name, count in (job.result or {}).items():
                counts[name] = counts.get(name, 0) + int(count)
        done = {"learning_status": "done", "learning_reason": "covered"}
        return answer.model_copy(update={**done, **_shown(counts)})

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
