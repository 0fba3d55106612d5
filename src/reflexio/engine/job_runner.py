"""Runs jobs lane by lane on the caller's event loop, and resumes them after a crash.

The journal stores each job and the results of its finished steps. At the start, unfinished jobs are read from it and
run again; their finished steps return the stored results.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

from reflexio.engine.lanes import LaneLimiter
from reflexio.engine.steps import StepRunner, run_workflow, to_json
from reflexio.errors import NotFound, ReflexioError, StorageUnavailable
from reflexio.ports.clock import Clock, SystemClock
from reflexio.ports.work import ENDED, EnqueuedJob, Job, Journal, Json, StepResult, Workflow

log = logging.getLogger("reflexio")

PAUSES = (0.1, 0.5, 2.0, 5.0, 10.0)
"""Seconds between tries to write to the journal: a full disk is often repaired soon."""
FORGET_BATCH = 1000
CLOSED = "The engine is closed; unfinished jobs continue at the next start."


@dataclass
class _ActiveJob:
    """A job that has not ended. `stored` is true once the journal has it; `waiters` are the callers of `wait`."""

    enqueued: EnqueuedJob
    stored: "asyncio.Future[bool]"
    task: "asyncio.Task[None] | None" = None
    waiters: "set[asyncio.Future[Job]]" = field(default_factory=set)

    @property
    def is_over(self) -> bool:
        return self.enqueued.job.state in ENDED


class DurableWork:
    """Implements `Work`, as durably as its journal.

    `start` enters `process_lock`, on a thread, and `close` leaves it: it keeps other processes from working on the
    same journal. `close` waits `grace` seconds for the running steps. A job that was running at so many `crashes` of
    the process fails instead of running again.
    """

    def __init__(
        self,
        journal: Journal,
        *,
        concurrency: int = 8,
        grace: float = 1.5,
        crashes: int = 50,
        clock: Clock | None = None,
        process_lock: Callable[[], AbstractContextManager[object]] | None = None,
    ) -> None:
        self._journal = journal
        self._grace = grace
        self._crashes = crashes
        self._clock = clock or SystemClock()
        self._process_lock = process_lock
        self._held_lock: AbstractContextManager[object] | None = None
        self._lanes = LaneLimiter(concurrency)
        self._workflows: dict[str, tuple[Workflow, int]] = {}
        self._jobs: dict[str, _ActiveJob] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._starting: asyncio.Task[None] | None = None
        self._start_ended = asyncio.Event()
        self._start_error: ReflexioError | None = None
        self._closing = False

    def register(self, name: str, workflow: Workflow, *, version: int = 1) -> None:
        self._workflows[name] = workflow, version

    async def start(self) -> None:
        self._starting = asyncio.create_task(self._start())
        # Shielded: `close` must be able to wait for a start whose caller gave up.
        await asyncio.shield(self._starting)

    async def _start(self) -> None:
        try:
            if self._process_lock:
                lock = self._process_lock()
                await asyncio.to_thread(lock.__enter__)
                self._held_lock = lock
            unfinished = await self._journal.unfinished()
        except ReflexioError as error:
            # The next start, in this process or another, must find the lock free.
            self._release_lock()
            self._start_error = error
            self._start_ended.set()
            raise
        self._start_error = None
        for enqueued in unfinished:
            self._begin(enqueued).stored.set_result(True)
        self._start_ended.set()

    async def ready(self) -> None:
        await self._start_ended.wait()
        if self._start_error:
            raise self._start_error
        if self._closing:
            raise StorageUnavailable(CLOSED)

    async def enqueue(self, name: str, key: str, data: Json, *, lane: str) -> Job:
        if name not in self._workflows:
            raise NotFound(what="workflow", id=name)
        text = to_json(data)
        await self.ready()
        if key not in self._jobs:
            # The job takes its place in the lane before the first await, so jobs run in the order of these calls.
            active = self._begin(EnqueuedJob(Job(key, name, "queued"), lane, text))
            # Shielded: a job that the journal has must run, even if the caller has given up.
            await asyncio.shield(self._spawn(self._store(active)))
        elif not await asyncio.shield(self._jobs[key].stored):
            raise StorageUnavailable("The job could not be stored.")
        if key in self._jobs:
            return self._jobs[key].enqueued.job
        job = await self._journal.get(key)
        assert job is not None, "a key that cannot be added exists"
        return job

    async def _store(self, active: _ActiveJob) -> None:
        """A job begins once the journal has it. A job that the journal had before has ended already."""
        is_new = False
        try:
            is_new = await self._journal.add(active.enqueued, self._clock.now())
        finally:
            if not is_new:
                self._jobs.pop(active.enqueued.job.key, None)
            if not active.stored.done():
                active.stored.set_result(is_new)

    async def wait(self, key: str) -> Job:
        await self.ready()
        if active := self._jobs.get(key):
            waiter: asyncio.Future[Job] = asyncio.get_running_loop().create_future()
            active.waiters.add(waiter)
            try:
                return await waiter
            finally:
                active.waiters.discard(waiter)
        job = await self._journal.get(key)
        if job is None:
            raise NotFound(what="job", id=key)
        return job

    async def get(self, key: str) -> Job | None:
        active = self._jobs.get(key)
        return active.enqueued.job if active else await self._journal.get(key)

    async def cancel(self, key: str) -> bool:
        await self.ready()
        active = self._jobs.get(key)
        if active is None or active.is_over:
            return False
        await self._end(active, replace(active.enqueued.job, state="cancelled"))
        # The step under way may wait for an answer that never comes: its place is for the next job.
        if active.task:
            active.task.cancel()
        return True

    async def forget(self, before: int) -> int:
        total, count = 0, FORGET_BATCH
        while count == FORGET_BATCH:
            count = await self._journal.forget(before, FORGET_BATCH)
            total += count
        return total

    async def close(self) -> None:
        self._closing = True
        if self._starting:
            await asyncio.gather(self._starting, return_exceptions=True)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._grace)
        await self.crash()

    async def crash(self) -> None:
        """Does what `kill -9` does: everything that runs ends here and now, and only the journal stays."""
        self._closing = True
        for task in (tasks := list(self._tasks)):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for active in self._jobs.values():
            for waiter in active.waiters:
                if not waiter.done():
                    waiter.set_exception(StorageUnavailable(CLOSED))
        self._jobs.clear()
        self._start_ended.set()
        self._release_lock()

    def _release_lock(self) -> None:
        if self._held_lock:
            self._held_lock.__exit__(None, None, None)
            self._held_lock = None

    def _spawn(self, work: Coroutine[None, None, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _begin(self, enqueued: EnqueuedJob) -> _ActiveJob:
        active = _ActiveJob(enqueued, asyncio.get_running_loop().create_future())
        self._jobs[enqueued.job.key] = active
        active.task = self._spawn(self._run(active))
        return active

    async def _run(self, active: _ActiveJob) -> None:
        async with self._lanes.slot(active.enqueued.lane, active.enqueued.organisation):
            if not await asyncio.shield(active.stored) or self._closing or active.is_over:
                return
            enqueued = active.enqueued
            if enqueued.begun >= self._crashes:
                error = f"The process died {enqueued.begun} times while this job was running; it does not run again."
                await self._end(active, replace(enqueued.job, state="failed", error=error))
                return
            await self._write(lambda: self._journal.begin(enqueued.job.key))
            active.enqueued = replace(enqueued, job=replace(enqueued.job, state="running"))
            ended = await self._execute(active)
            if not active.is_over:
                await self._end(active, ended)

    async def _execute(self, active: _ActiveJob) -> Job:
        job, results = active.enqueued.job, active.enqueued.results
        if job.name not in self._workflows:
            return replace(job, state="failed", error=f"This Reflexio has no workflow {job.name!r}.")
        workflow, version = self._workflows[job.name]
        for result in results.values():
            if result.version != version:
                versions = f"version {result.version}, now {version}"
                error = f"The workflow {job.name!r} changed ({versions}) after steps were finished."
                return replace(job, state="failed", error=error)

        async def store(step: str, value: Json) -> None:
            result = StepResult(version, to_json(value))
            await self._write(lambda: self._journal.answer(job.key, step, result))

        known = {step: json.loads(result.text) for step, result in results.items()}
        steps = StepRunner(known, store, lambda: self._closing or active.is_over)
        return await run_workflow(workflow, steps, json.loads(active.enqueued.data), job)

    async def _end(self, active: _ActiveJob, job: Job) -> None:
        """Callers of `wait` return once the journal has the end of the job."""
        active.enqueued = replace(active.enqueued, job=job)
        await self._write(lambda: self._journal.end(job, self._clock.now()), for_ever=True)
        self._jobs.pop(job.key, None)
        for waiter in active.waiters:
            if not waiter.done():
                waiter.set_result(job)

    async def _write(self, write: Callable[[], Awaitable[None]], *, for_ever: bool = False) -> None:
        """Retries a write: finished work, perhaps paid for, must not be lost because the disk is full for a moment."""
        pauses = list(PAUSES)
        while True:
            try:
                return await write()
            except StorageUnavailable as error:
                if self._closing or not (pauses or for_ever):
                    raise
                log.warning("cannot write finished work to the journal, trying again: %s", error)
                await asyncio.sleep(pauses.pop(0) if pauses else PAUSES[-1])
