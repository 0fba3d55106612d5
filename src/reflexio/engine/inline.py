"""Work within the process: the twin for tests. What a crash would leave behind stays in a `Memory`."""

import asyncio
import json
from collections.abc import Awaitable, Callable
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
from reflexio.errors import NotFound, StorageUnavailable
from reflexio.ports.clock import Clock, SystemClock
from reflexio.ports.work import Job, Json, Workflow

ENDED = frozenset({"done", "failed", "cancelled"})


@dataclass
class Asked:
    """A job as it was asked for, and how far it came."""

    job: Job
    lane: str
    data: str
    answers: dict[str, tuple[int, str]] = field(default_factory=dict)
    ended_at: int = 0


@dataclass
class Memory:
    """Jobs in the order asked for. Give it to the next engine, and that one goes on where this one was stopped."""

    jobs: dict[str, Asked] = field(default_factory=dict)


class InlineWork:
    """Same semantics as the durable engine, as durable as its memory."""

    def __init__(
        self, memory: Memory | None = None, *, concurrency: int = 8, grace: float = 1.5, clock: Clock | None = None
    ) -> None:
        self._memory = memory or Memory()
        self._grace = grace
        self._clock = clock or SystemClock()
        self._lanes = Lanes(concurrency)
        self._workflows: dict[str, Registered] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ended: dict[str, asyncio.Future[None]] = {}
        self._started = self._closing = False

    def register(self, name: str, workflow: Workflow, *, version: int = 1) -> None:
        self._workflows[name] = Registered(workflow, version)

    async def start(self) -> None:
        self._started = True
        for key, asked in self._memory.jobs.items():
            if asked.job.state not in ENDED:
                asked.job = replace(asked.job, state="queued")
                self._begin(key)

    async def enqueue(self, name: str, key: str, data: Json, *, lane: str) -> Job:
        if name not in self._workflows:
            raise NotFound(what="workflow", id=name)
        text = as_text(data)
        if key not in self._memory.jobs:
            self._memory.jobs[key] = Asked(Job(key, name, "queued"), lane, text)
            if self._started:
                self._begin(key)
        return self._memory.jobs[key].job

    async def wait(self, key: str) -> Job:
        if key not in self._memory.jobs:
            raise NotFound(what="job", id=key)
        asked = self._memory.jobs[key]
        if asked.job.state not in ENDED:
            # Shielded: one caller who gives up takes nothing from the others.
            await asyncio.shield(self._ended.setdefault(key, asyncio.get_running_loop().create_future()))
        return asked.job

    async def get(self, key: str) -> Job | None:
        asked = self._memory.jobs.get(key)
        return asked.job if asked else None

    async def cancel(self, key: str) -> bool:
        asked = self._memory.jobs.get(key)
        if asked is None or asked.job.state in ENDED:
            return False
        self._end(asked, replace(asked.job, state="cancelled"))
        return True

    async def forget(self, before: int) -> int:
        old = [key for key, asked in self._memory.jobs.items() if asked.job.state in ENDED and asked.ended_at < before]
        for key in old:
            del self._memory.jobs[key]
        return len(old)

    async def close(self) -> None:
        self._closing = True
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=self._grace)
        await self.crash()

    async def crash(self) -> None:
        """What `kill -9` does: whatever is at hand ends here and now, and only the memory stays."""
        self._closing = True
        left = list(self._tasks.values())
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        for told in self._ended.values():
            told.set_exception(StorageUnavailable(CLOSED))
        self._ended.clear()

    def _begin(self, key: str) -> None:
        task = asyncio.create_task(self._run(self._memory.jobs[key]))
        self._tasks[key] = task
        task.add_done_callback(lambda _: self._tasks.pop(key, None))

    async def _run(self, asked: Asked) -> None:
        async with self._lanes.turn(asked.lane):
            if self._closing or asked.job.state in ENDED:
                return
            asked.job = replace(asked.job, state="running")
            outcome = await self._outcome(asked)
            if asked.job.state == "running":
                self._end(asked, replace(asked.job, state=outcome.state, result=outcome.result, error=outcome.error))

    async def _outcome(self, asked: Asked) -> Outcome:
        job = asked.job
        registered = self._workflows.get(job.name)
        if registered is None:
            return unregistered(job.name)
        for version, _ in asked.answers.values():
            if version != registered.version:
                return changed(job.name, version, registered.version)
        steps = NamedSteps(
            {name: json.loads(text) for name, (_, text) in asked.answers.items()},
            self._keeper(asked, registered.version),
            lambda: self._closing or asked.job.state in ENDED,
        )
        return await outcome_of(registered.workflow, steps, json.loads(asked.data), label=f"{job.name} {job.key!r}")

    def _keeper(self, asked: Asked, version: int) -> Callable[[str, Act], Awaitable[Json]]:
        async def keep(name: str, act: Act) -> Json:
            answer = await answer_of(act)
            asked.answers[name] = (version, as_text(answer))
            return answer

        return keep

    def _end(self, asked: Asked, job: Job) -> None:
        asked.job, asked.ended_at = job, self._clock.now()
        if told := self._ended.pop(job.key, None):
            told.set_result(None)
