"""Runs jobs lane by lane on the caller's event loop, beside any number of other processes, and resumes them after a
crash.

The journal is shared: it stores each job and the results of its finished steps. A worker claims jobs and renews its
claims every second; jobs of a worker that is silent are claimed by others, and their finished steps return the stored
results. A process that only enqueues and waits, as a server does, claims nothing.
"""

import asyncio
import json
import logging
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, TypeVar
from uuid import uuid4

from reflexio.engine.lanes import choose_jobs
from reflexio.engine.steps import StepRunner, run_workflow, to_json
from reflexio.errors import LeaseLost, NotFound, NoWorker, StorageUnavailable
from reflexio.ports.clock import Clock, SystemClock
from reflexio.ports.storage.changes import Changes
from reflexio.ports.work import ENDED, ClaimedJob, EnqueuedJob, Job, Journal, Json, StepResult, Workflow

log = logging.getLogger("reflexio")

PAUSES = (0.1, 0.5, 2.0, 5.0, 10.0)
"""Seconds between tries to write to the journal: a full disk is often repaired soon."""
BEAT_SECONDS = 1.0
"""A quarter of a lease: one lost beat does no harm."""
LOOK_SECONDS = 1.0
"""Seconds between two looks into the journal without a sign of change: leases expire silently."""
LANES_READ = 500
"""Lanes among which those are chosen that run next."""
FORGET_BATCH = 1000
MOST_LANES = 10_000
"""Lanes of which is remembered when they were last served, so that a long one starves no other."""
CLOSED = "The engine is closed; unfinished jobs continue at the next start."
DIED = "The process died {times} times while this job was running; it does not run again."

R = TypeVar("R")
IsWorking = Callable[[], Awaitable[bool]]


async def _always() -> bool:
    return True


@dataclass
class _RunningJob:
    """A job that this process has claimed. `is_stopped` once it was cancelled or lost."""

    claimed: ClaimedJob
    organisation: str
    task: "asyncio.Task[None] | None" = None
    is_stopped: bool = False

    def stop(self) -> None:
        """Also the step under way: it may wait for an answer that never comes."""
        self.is_stopped = True
        if self.task:
            self.task.cancel()


class DurableWork:
    """Implements `Work`, as durably as its journal.

    When the process that starts is known to be the only worker (`is_alone`), it goes on at once with what a dead one
    left; else when the leases have expired. `changes` tells when somebody has written to the journal. `is_working`
    tells a process that does not work itself whether another one does. `close` waits `grace` seconds for the running
    steps. A job that was running at so many `crashes` of a process fails instead of running again.
    """

    def __init__(
        self,
        journal: Journal,
        *,
        is_alone: bool = True,
        changes: Changes | None = None,
        is_working: IsWorking = _always,
        concurrency: int = 8,
        grace: float = 1.5,
        crashes: int = 50,
        clock: Clock | None = None,
    ) -> None:
        self._journal = journal
        self._is_alone = is_alone
        self._changes = changes
        self._is_working = is_working
        self._concurrency = concurrency
        self._grace = grace
        self._crashes = crashes
        self._clock = clock or SystemClock()
        self.worker = uuid4().hex
        self._workflows: dict[str, tuple[Workflow, int]] = {}
        self._running: dict[str, _RunningJob] = {}
        self._waiters: defaultdict[str, set[asyncio.Future[Job]]] = defaultdict(set)
        self._served: OrderedDict[str, int] = OrderedDict()
        self._turns = count(1)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._loops: list[asyncio.Task[None]] = []
        self._look = asyncio.Event()
        self._starts = False
        self._closing = False

    def register(self, name: str, workflow: Workflow, *, version: int = 1) -> None:
        self._workflows[name] = workflow, version

    async def start(self) -> None:
        if self._is_alone:
            await self._journal.adopt()
        self._starts = True
        self._look.set()
        self._loop(self._claim_jobs)
        self._loop(self._beat)
        if self._changes:
            self._loop(self._notice_changes)

    async def ready(self) -> None:
        if self._closing:
            raise StorageUnavailable(CLOSED)
        if not self._starts and not await self._is_working():
            raise NoWorker

    async def enqueue(self, name: str, key: str, data: Json, *, lane: str) -> Job:
        if name not in self._workflows:
            raise NotFound(what="workflow", id=name)
        job = Job(key, name, "queued")
        enqueued = EnqueuedJob(job, lane, to_json(data), str(data.get("org_id", "")))
        await self.ready()
        # Shielded: whether the journal has the job or not must not depend on the patience of a caller.
        if await asyncio.shield(self._spawn(self._journal.add(enqueued, self._clock.now()))):
            self._look.set()
            return job
        stored = await self._journal.get(key)
        assert stored is not None, "a key that cannot be added exists"
        return stored

    async def wait(self, key: str) -> Job:
        await self.ready()
        waiter: asyncio.Future[Job] = asyncio.get_running_loop().create_future()
        self._waiters[key].add(waiter)
        try:
            job = await self._journal.get(key)
            if job is None:
                raise NotFound(what="job", id=key)
            if job.state in ENDED:
                return job
            if not self._loops and self._changes:
                self._loop(self._notice_changes)
            return await waiter
        finally:
            self._waiters[key].discard(waiter)
            if not self._waiters[key]:
                del self._waiters[key]

    async def get(self, key: str) -> Job | None:
        return await self._journal.get(key)

    async def cancel(self, key: str) -> bool:
        await self.ready()
        if not await self._journal.cancel(key, self._clock.now()):
            return False
        if running := self._running.get(key):
            running.stop()
        job = await self._journal.get(key)
        assert job is not None
        self._answer(job)
        self._look.set()
        return True

    async def forget(self, before: int) -> int:
        total, forgotten = 0, FORGET_BATCH
        while forgotten == FORGET_BATCH:
            forgotten = await self._journal.forget(before, FORGET_BATCH)
            total += forgotten
        return total

    async def close(self) -> None:
        is_first, self._closing = not self._closing, True
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._grace)
        await self.crash()
        if is_first and self._starts:
            with suppress(StorageUnavailable):
                await self._journal.give_back(self.worker)

    async def crash(self) -> None:
        """Does what `kill -9` does: everything that runs ends here and now, and only the journal stays."""
        self._closing = True
        tasks = [*self._loops, *self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for waiters in self._waiters.values():
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_exception(StorageUnavailable(CLOSED))
        self._running.clear()

    def _loop(self, loop: Callable[[], Coroutine[None, None, None]]) -> None:
        async def keep_running() -> None:
            while True:
                try:
                    await loop()
                except Exception:  # a defect must not end all learning until the next start
                    log.exception("the engine's loop failed and begins again")
                await asyncio.sleep(LOOK_SECONDS)

        self._loops.append(asyncio.create_task(keep_running()))

    def _spawn(self, work: Coroutine[None, None, R]) -> "asyncio.Task[R]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _claim_jobs(self) -> None:
        """Claims jobs whenever there may be some and there is room."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._look.wait()
            self._look.clear()
            if self._closing:
                return
            try:
                await self._claim_some()
            except StorageUnavailable as error:
                log.warning("jobs wait: %s", error)
                await asyncio.sleep(LOOK_SECONDS)

    async def _claim_some(self) -> None:
        # Not those whose lease has ended while this process slept: it may still be running their steps.
        free = await self._journal.waiting(LANES_READ)
        waiting = {job.key: job for job in free if job.key not in self._running}
        held = Counter(running.organisation for running in self._running.values())
        chosen = choose_jobs(waiting.values(), held, self._concurrency, self._served)
        if not chosen:
            return
        for claimed in await self._journal.claim(self.worker, [job.key for job in chosen]):
            job = waiting[claimed.job.key]
            self._note_service(job.lane)
            running = self._running[job.key] = _RunningJob(claimed, job.organisation)
            running.task = self._spawn(self._run(running))

    def _note_service(self, lane: str) -> None:
        self._served[lane] = next(self._turns)
        self._served.move_to_end(lane)
        while len(self._served) > MOST_LANES:
            self._served.popitem(last=False)

    async def _beat(self) -> None:
        """Renews the leases, and stops what was cancelled or lost meanwhile."""
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            if not self._running:
                continue
            begun = dict(self._running)
            try:
                held = await self._journal.beat(self.worker)
            except StorageUnavailable as error:
                log.warning("leases are not renewed: %s", error)
                continue
            for key, running in begun.items():
                if held.get(key, "cancelled") in ENDED:
                    running.stop()

    async def _notice_changes(self) -> None:
        """Looks for ended jobs that callers wait for, and for new jobs, when another process has written."""
        assert self._changes is not None
        seen = 0
        while True:
            seen = await self._changes.wait(seen, LOOK_SECONDS)
            self._look.set()
            if self._waiters:
                with suppress(StorageUnavailable):  # the next look may succeed
                    for job in await self._journal.ended(list(self._waiters)):
                        self._answer(job)

    def _answer(self, job: Job) -> None:
        for waiter in self._waiters.get(job.key, ()):
            if not waiter.done():
                waiter.set_result(job)

    async def _run(self, running: _RunningJob) -> None:
        claimed = running.claimed
        try:
            ended = await self._execute(running)
            await self._write(lambda: self._journal.end(claimed, ended, self._clock.now()), for_ever=True)
            self._answer(ended)
        except (LeaseLost, asyncio.CancelledError) as error:
            if self._closing:
                raise
            if isinstance(error, LeaseLost):
                log.info("%s %r ended elsewhere, or goes on there", claimed.job.name, claimed.job.key)
            with suppress(StorageUnavailable):  # its lease ends by itself
                await self._journal.free_lane(claimed)
        finally:
            self._running.pop(claimed.job.key, None)
            self._look.set()

    async def _execute(self, running: _RunningJob) -> Job:
        claimed = running.claimed
        job = claimed.job
        if claimed.claim > self._crashes:
            return replace(job, state="failed", error=DIED.format(times=claimed.claim - 1))
        if job.name not in self._workflows:
            return replace(job, state="failed", error=f"This Reflexio has no workflow {job.name!r}.")
        workflow, version = self._workflows[job.name]
        for result in claimed.results.values():
            if result.version != version:
                words = f"The workflow {job.name!r} changed (version {result.version}, now {version})"
                return replace(job, state="failed", error=f"{words} after steps were finished.")

        async def store(step: str, value: Json) -> None:
            result = StepResult(version, to_json(value))
            try:
                await self._write(lambda: self._journal.answer(claimed, step, result))
            except LeaseLost:
                # Not an Exception: a workflow that catches those must not go on, nor record a failure.
                running.is_stopped = True
                raise asyncio.CancelledError(f"lost before step {step!r} was stored") from None

        known = {step: json.loads(result.text) for step, result in claimed.results.items()}
        steps = StepRunner(known, store, lambda: self._closing or running.is_stopped)
        return await run_workflow(workflow, steps, json.loads(claimed.data), job)

    async def _write(self, write: Callable[[], Awaitable[None]], *, for_ever: bool = False) -> None:
        """Retries a write: finished work, perhaps paid for, must not be lost because the disk is full for a moment."""
        pauses = list(PAUSES)
        while True:
            try:
                return await write()
            except LeaseLost:
                raise
            except StorageUnavailable as error:
                if self._closing or not (pauses or for_ever):
                    raise
                log.warning("cannot write finished work to the journal, trying again: %s", error)
                await asyncio.sleep(pauses.pop(0) if pauses else PAUSES[-1])
