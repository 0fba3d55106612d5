"""Durable work: jobs in lanes, run on the caller's loop; whatever must outlive the process is in a journal."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

from reflexio.engine.lanes import Lanes
from reflexio.engine.steps import (
    CLOSED,
    Act,
    NamedSteps,
    Outcome,
    Registered,
    answer_of,
    as_text,
    changed,
    outcome_of,
    unregistered,
)
from reflexio.errors import NotFound, ReflexioError, StorageUnavailable
from reflexio.ports.clock import Clock, SystemClock
from reflexio.ports.work import ENDED, Answer, Asked, Job, Journal, Json, Workflow

log = logging.getLogger("reflexio")

PAUSES = (0.1, 0.5, 2.0, 5.0, 10.0)
"""Seconds between tries to write down what was done: a full disk is often mended soon."""
FORGOTTEN_AT_ONCE = 1000


@dataclass
class _Running:
    """A job that has not ended, and those who wait for it."""

    asked: Asked
    stored: "asyncio.Future[bool]"
    waiting: "set[asyncio.Future[Job]]" = field(default_factory=set)

    @property
    def is_over(self) -> bool:
        return self.asked.job.state in ENDED


class DurableWork:
    """As durable as its journal.

    `alone` is entered by `start`, on a thread, and left by `close`: it sees to it that no other process works on the
    same journal. `grace` is how long `close` waits for the steps at hand, in seconds. A job that had begun at so many
    `deaths` of the process is set aside as failed.
    """

    def __init__(
        self,
        journal: Journal,
        *,
        concurrency: int = 8,
        grace: float = 1.5,
        deaths: int = 50,
        clock: Clock | None = None,
        alone: Callable[[], AbstractContextManager[object]] | None = None,
    ) -> None:
        self._journal = journal
        self._grace = grace
        self._deaths = deaths
        self._clock = clock or SystemClock()
        self._alone = alone
        self._held: AbstractContextManager[object] | None = None
        self._lanes = Lanes(concurrency)
        self._workflows: dict[str, Registered] = {}
        self._jobs: dict[str, _Running] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._starting: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()
        self._refusal: ReflexioError | None = None
        self._closing = False

    def register(self, name: str, workflow: Workflow, *, version: int = 1) -> None:
        self._workflows[name] = Registered(workflow, version)

    async def start(self) -> None:
        self._starting = asyncio.create_task(self._start())
        # Shielded: a start that is given up half-way is still to be closed.
        await asyncio.shield(self._starting)

    async def _start(self) -> None:
        try:
            if self._alone:
                held = self._alone()
                await asyncio.to_thread(held.__enter__)
                self._held = held
            left = await self._journal.unfinished()
        except ReflexioError as error:
            # Let go: the next start, here or elsewhere, must find the place free.
            self._release()
            self._refusal = error
            self._settled.set()
            raise
        self._refusal = None
        for asked in left:
            known = asyncio.get_running_loop().create_future()
            known.set_result(True)
            self._begin(asked, known)
        self._settled.set()

    async def ready(self) -> None:
        await self._settled.wait()
        if self._refusal:
            raise self._refusal
        if self._closing:
            raise StorageUnavailable(CLOSED)

    async def enqueue(self, name: str, key: str, data: Json, *, lane: str) -> Job:
        if name not in self._workflows:
            raise NotFound(what="workflow", id=name)
        text = as_text(data)
        await self.ready()
        if key not in self._jobs:
            # Its place in the lane is taken before anything is awaited: the order asked for is the order done.
            asked = Asked(Job(key, name, "queued"), lane, text)
            running = self._begin(asked, asyncio.get_running_loop().create_future())
            storing = asyncio.create_task(self._store(running))
            self._tasks.add(storing)
            storing.add_done_callback(self._tasks.discard)
            # Shielded: a job that is written down is done, also when the caller has given up meanwhile.
            await asyncio.shield(storing)
        elif not await asyncio.shield(self._jobs[key].stored):
            raise StorageUnavailable("The job could not be written down.")
        if key in self._jobs:
            return self._jobs[key].asked.job
        job = await self._journal.get(key)
        assert job is not None, "a key that cannot be added is there"
        return job

    async def _store(self, running: _Running) -> None:
        """A job begins once the journal has it. One that the journal had already has ended there."""
        is_new = False
        try:
            is_new = await self._journal.add(running.asked, self._clock.now())
        finally:
            if not is_new:
                self._jobs.pop(running.asked.job.key, None)
            if not running.stored.done():
                running.stored.set_result(is_new)

    async def wait(self, key: str) -> Job:
        await self.ready()
        if running := self._jobs.get(key):
            told: asyncio.Future[Job] = asyncio.get_running_loop().create_future()
            running.waiting.add(told)
            try:
                return await told
            finally:
                running.waiting.discard(told)
        job = await self._journal.get(key)
        if job is None:
            raise NotFound(what="job", id=key)
        return job

    async def get(self, key: str) -> Job | None:
        running = self._jobs.get(key)
        return running.asked.job if running else await self._journal.get(key)

    async def cancel(self, key: str) -> bool:
        await self.ready()
        running = self._jobs.get(key)
        if running is None or running.is_over:
            return False
        await self._end(running, replace(running.asked.job, state="cancelled"))
        return True

    async def forget(self, before: int) -> int:
        forgotten, some = 0, FORGOTTEN_AT_ONCE
        while some == FORGOTTEN_AT_ONCE:
            some = await self._journal.forget(before, FORGOTTEN_AT_ONCE)
            forgotten += some
        return forgotten

    async def close(self) -> None:
        self._closing = True
        if self._starting:
            await asyncio.gather(self._starting, return_exceptions=True)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._grace)
        await self.crash()

    async def crash(self) -> None:
        """What `kill -9` does: whatever is at hand ends here and now, and only the journal stays."""
        self._closing = True
        for task in (left := list(self._tasks)):
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        for running in self._jobs.values():
            for told in running.waiting:
                if not told.done():
                    told.set_exception(StorageUnavailable(CLOSED))
        self._jobs.clear()
        self._settled.set()
        self._release()

    def _release(self) -> None:
        if self._held:
            self._held.__exit__(None, None, None)
            self._held = None

    def _begin(self, asked: Asked, stored: "asyncio.Future[bool]") -> _Running:
        running = _Running(asked, stored)
        self._jobs[asked.job.key] = running
        task = asyncio.create_task(self._run(running))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return running

    async def _run(self, running: _Running) -> None:
        async with self._lanes.turn(running.asked.lane):
            if not await running.stored or self._closing or running.is_over:
                return
            asked = running.asked
            if asked.begun >= self._deaths:
                error = f"The process died {asked.begun} times while this job was under way; it is set aside."
                await self._end(running, replace(asked.job, state="failed", error=error))
                return
            await self._surely(lambda: self._journal.begin(asked.job.key))
            running.asked = replace(asked, job=replace(asked.job, state="running"))
            outcome = await self._outcome(running)
            if not running.is_over:
                ended = replace(running.asked.job, state=outcome.state, result=outcome.result, error=outcome.error)
                await self._end(running, ended)

    async def _outcome(self, running: _Running) -> Outcome:
        asked = running.asked
        name = asked.job.name
        registered = self._workflows.get(name)
        if registered is None:
            return unregistered(name)
        for answer in asked.answers.values():
            if answer.version != registered.version:
                return changed(name, answer.version, registered.version)
        steps = NamedSteps(
            {step: json.loads(answer.text) for step, answer in asked.answers.items()},
            self._keeper(asked.job.key, registered.version),
            lambda: self._closing or running.is_over,
        )
        label = f"{name} {asked.job.key!r}"
        return await outcome_of(registered.workflow, steps, json.loads(asked.data), label=label)

    def _keeper(self, key: str, version: int) -> Callable[[str, Act], Awaitable[Json]]:
        async def keep(step: str, act: Act) -> Json:
            answer = await answer_of(act)
            await self._surely(lambda: self._journal.answer(key, step, Answer(version, as_text(answer))))
            return answer

        return keep

    async def _end(self, running: _Running, job: Job) -> None:
        """Whoever waits is told once the journal has it."""
        running.asked = replace(running.asked, job=job)
        await self._surely(lambda: self._journal.end(job, self._clock.now()), for_ever=True)
        self._jobs.pop(job.key, None)
        for told in running.waiting:
            if not told.done():
                told.set_result(job)

    async def _surely(self, write: Callable[[], Awaitable[None]], *, for_ever: bool = False) -> None:
        """What was done, and perhaps paid for, is not given up because the disk is full for a moment."""
        pauses = list(PAUSES)
        while True:
            try:
                return await write()
            except StorageUnavailable as error:
                if self._closing or not (pauses or for_ever):
                    raise
                log.warning("finished work cannot be written down, trying again: %s", error)
                await asyncio.sleep(pauses.pop(0) if pauses else PAUSES[-1])
