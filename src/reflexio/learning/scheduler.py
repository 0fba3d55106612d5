"""Which users are due, and one durable job for a window of each of them.

The database knows who has unlearned turns; users are learned side by side, each one in order.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import zip_longest

from reflexio.errors import ReflexioError
from reflexio.interactions.publish import RESERVED_SECONDS
from reflexio.jobs.background import BackgroundTasks
from reflexio.jobs.token_budget import allowed
from reflexio.learning.failure import fail
from reflexio.learning.finished_steps import begun_windows
from reflexio.learning.stall import StallMonitor
from reflexio.learning.window import PlannedWindow, WindowTask, is_backlog_due, is_due, next_window
from reflexio.learning.worker import WORKFLOW
from reflexio.models.config import Config
from reflexio.organisations.configuration import stored_config
from reflexio.ports.clock import Clock
from reflexio.ports.fair_share import may_take_place
from reflexio.ports.storage import Database, Tx, Waiting
from reflexio.ports.work import Job, Work

log = logging.getLogger("reflexio.learn")

POLL_SECONDS, IDLE_POLLS = 0.25, 7
PAGE_SIZE, ORGANISATIONS_AT_ONCE = 200, 16
"""Users and organisations that are looked at in one poll; the next poll goes on behind them."""
MOST_RUNNING, MOST_RUNNING_WHEN_BUSY = 32, 1
"""Windows in progress at most: few, so that little is left to do when many callers come."""
NOTHING_LEFT = PlannedWindow((), "", "", "")


def window_task(org_id: str, user_id: str, window: PlannedWindow, *, attempt: int) -> WindowTask:
    # Turns are numbered across users: the key names nobody, and outlives an erasure.
    key = f"learn:{org_id}:{window.turns[0]}-{window.turns[-1]}:{attempt}"
    place = (window.turns, window.agent_version, window.source, window.request_id)
    return WindowTask(key, org_id, user_id, *place)


@dataclass
class LearningScheduler:
    """Starts windows that are due, in the background."""

    database: Database
    work: Work
    clock: Clock
    stalls: StallMonitor
    tasks: BackgroundTasks = field(default_factory=BackgroundTasks)
    _running: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Windows in progress, by organisation and user."""
    _has_room: asyncio.Event = field(default_factory=asyncio.Event)
    """Half of the windows in progress are done: more may start before the next poll."""
    _last_organisation: str = ""
    _page_ends: dict[str, Waiting] = field(default_factory=dict)
    """Of organisations whose users do not fit in a page: where the next one begins."""
    _nobody_waits: bool = False

    @property
    def is_learning(self) -> bool:
        return bool(self._running)

    async def run(self, is_busy: Callable[[], bool]) -> None:
        """Runs until cancelled. Callers go first: while many calls come in, few windows are started at a time."""
        while True:
            self._has_room.clear()
            writes = self.database.changes.version
            try:
                await self.start_due(MOST_RUNNING_WHEN_BUSY if is_busy() else MOST_RUNNING)
            except ReflexioError as error:
                log.error("learning waits: %s", error)
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await (asyncio.sleep(POLL_SECONDS) if is_busy() else self._has_room.wait())
            for _ in range(IDLE_POLLS):
                # Nobody has unlearned turns, so nobody becomes due by the time alone.
                if not self._nobody_waits or self.database.changes.version != writes:
                    break
                await asyncio.sleep(POLL_SECONDS)

    async def start_due(self, most: int = PAGE_SIZE) -> int:
        """Starts a window of every user who is due, while fewer than `most` run; returns how many were started.

        Organisations take turns, and each may have its fair share whatever the windows of others wait for.
        """
        started = 0
        organisations = await self.database.waiting_organisations(ORGANISATIONS_AT_ONCE, after=self._last_organisation)
        self._nobody_waits = not organisations
        self._last_organisation = organisations[-1] if len(organisations) == ORGANISATIONS_AT_ONCE else ""
        due = [await self._find_due(org_id, PAGE_SIZE // len(organisations)) for org_id in organisations]
        for waiting in (user for turn in zip_longest(*due) for user in turn if user):
            place = waiting.org_id, waiting.user_id
            if not self._running[place] and self._may_begin(waiting.org_id, most, len(organisations)):
                started += await self._start(waiting)
        return started

    def _may_begin(self, org_id: str, most: int, organisations: int) -> bool:
        running = [organisation for (organisation, _), count in self._running.items() if count]
        organisations = max(organisations, len({org_id, *running}))
        return may_take_place(places=most, taken=len(running), own=running.count(org_id), organisations=organisations)

    async def _find_due(self, org_id: str, limit: int) -> list[Waiting]:
        """Users who may be due, in one read: most wait for more turns."""
        now, after = self.clock.now(), self._page_ends.get(org_id)

        def read(tx: Tx) -> tuple[list[Waiting], list[Waiting]]:
            users = tx.users.longest_waiting(limit, after=after)
            config, backlogs = stored_config(tx), tx.interactions.backlogs([user.user_id for user in users])
            counted = [(user, backlogs.get(user.user_id)) for user in users]
            return users, [user for user, count in counted if not count or is_backlog_due(count, user, config, now)]

        page, due = await self.database.of(org_id).read(read)
        # Page after page, in a cycle: users who wait for long without being due hide nobody.
        if len(page) == limit:
            self._page_ends[org_id] = page[-1]
        else:
            self._page_ends.pop(org_id, None)
        return due

    async def _start(self, waiting: Waiting) -> int:
        store, now = self.database.of(waiting.org_id), self.clock.now()

        def plan(tx: Tx) -> PlannedWindow | None:
            config, user = stored_config(tx), tx.users.waiting(waiting.user_id)
            # Far ahead: reserved by a clock that was set back since.
            if user and 0 < user.reserved_until - now <= RESERVED_SECONDS:
                return None
            if tx.stalls.get() and not self._may_probe(waiting.org_id, config, now):
                return None
            if self.stalls.is_paused(waiting.org_id, now) or self._is_full(waiting.org_id, config):
                return None
            if not allowed(tx, config, now):
                return None
            turns = tx.interactions.unlearned(waiting.user_id, config.window_size)
            if not turns:
                return NOTHING_LEFT
            begun = begun_windows(tx.windows.finished_steps(waiting.user_id))
            return next_window(turns, config, begun) if is_due(turns, waiting, config, now) else None

        window = await store.read(plan)
        place = waiting.org_id, waiting.user_id
        if window is None or self._running[place]:
            return 0
        if window is NOTHING_LEFT:
            await store.write(lambda tx: tx.users.clear_unlearned(waiting.user_id))
            return 0
        self._running[place] += 1
        task = window_task(waiting.org_id, waiting.user_id, window, attempt=waiting.attempts)
        self.tasks.start(self._watch(task, waiting.attempts))
        return 1

    def _may_probe(self, org_id: str, config: Config, now: int) -> bool:
        return not self._count_running(org_id) and self.stalls.may_probe(org_id, config, now)

    def _is_full(self, org_id: str, config: Config) -> bool:
        """Whether a model that takes few calls at the same time has as many windows: more would keep others waiting."""
        most = config.llm_config.concurrency if config.llm_config else None
        return most is not None and self._count_running(org_id) >= most

    def _count_running(self, org_id: str) -> int:
        return sum(1 for (organisation, _), count in self._running.items() if count and organisation == org_id)

    async def _watch(self, task: WindowTask, attempts: int) -> None:
        try:
            await self.enqueue(task)
            job = await self.work.wait(task.key)
            if job.state != "done":  # the reason is in the log already
                await self.record_failure(task, attempts, job)
        except ReflexioError as error:
            log.info("a window of %s waits: %s", task.lane, error)
        finally:
            self._release(task.org_id, task.user_id)

    async def enqueue(self, task: WindowTask) -> None:
        """Appends a window to the lane of its user."""
        await self.work.enqueue(WORKFLOW, task.key, task.json(), lane=task.lane)

    async def record_failure(self, task: WindowTask, attempts: int, job: Job) -> None:
        """Records the failure of a job that ended without recording it, by a defect or with its process."""
        store = self.database.of(task.org_id)
        waiting = await store.read(lambda tx: tx.users.waiting(task.user_id))
        if waiting is not None and waiting.attempts == attempts and waiting.unlearned_since:
            await fail(task, store, self.clock, self.stalls, ReflexioError(job.error or job.state))

    def _release(self, org_id: str, user_id: str) -> None:
        self._running[org_id, user_id] -= 1
        if not self._running[org_id, user_id]:
            del self._running[org_id, user_id]
        if len(self._running) == MOST_RUNNING // 2:
            self._has_room.set()
