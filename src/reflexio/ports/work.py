"""Durable work: workflows made of steps. A finished step never runs, or costs money, a second time."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Json = dict[str, Any]
State = Literal["queued", "running", "done", "failed", "cancelled"]
ENDED: frozenset[State] = frozenset({"done", "failed", "cancelled"})


class Steps(Protocol):
    """Runs the steps of one workflow."""

    async def __call__(self, name: str, act: Callable[[], Awaitable[Json]]) -> Json:
        """Runs `act` once and stores its result; after a crash the stored result is returned instead.

        The name identifies the step: each name can finish only once in a workflow (number the steps of a loop), and
        a second use of a finished name raises ValueError. An error is raised to the workflow and not stored, so a
        workflow that tries again runs the step again. The result is JSON and is returned as JSON would read it back:
        tuples as lists, keys as strings.
        """


Workflow = Callable[[Steps, Json], Awaitable[Json]]


@dataclass(frozen=True)
class Job:
    """An enqueued workflow, under the key that makes it unique."""

    key: str
    name: str
    state: State
    result: Json | None = None
    error: str = ""


class Work(Protocol):
    """Runs the workflows that the composition root registers; knows none by name."""

    def register(self, name: str, workflow: Workflow, *, version: int = 1) -> None:
        """Call this before `start`. Raise the version when the steps of a workflow change their meaning: a job that
        finished steps under another version fails instead of continuing with results that mean something else."""

    async def start(self) -> None:
        """Starts working, first on the jobs that a crash left unfinished.

        Calls made meanwhile wait for the start. Raises StorageTaken when another process does this work already.
        """

    async def ready(self) -> None:
        """Returns once this process does the work. Raises StorageTaken while another process does it."""

    async def enqueue(self, name: str, key: str, data: Json, *, lane: str) -> Job:
        """Enqueues a workflow. The same key is the same job, whatever its state. Raises NotFound for a workflow
        that is not registered, TypeError or ValueError for data that is not JSON.

        Jobs of one `lane` run one after the other in the order of their enqueueing; lanes run side by side, up to
        the configured concurrency, and none starves. `data` names an organisation as `org_id`: each has a fair share
        of the places (`ports.fair_share`), whatever the jobs of others wait for.
        """

    async def wait(self, key: str) -> Job:
        """Returns when the job has ended, at once if it has ended already. Raises NotFound when there is no such
        job, and StorageUnavailable when the engine is closed first."""

    async def get(self, key: str) -> Job | None: ...

    async def cancel(self, key: str) -> bool:
        """Ends the job: callers of `wait` return now, and the step under way is cancelled, so that its place is free.
        False when there is nothing to end."""

    async def forget(self, before: int) -> int:
        """Deletes jobs that ended before that time and returns how many; their keys may be used again."""

    async def close(self) -> None:
        """Stops after the running steps, or during those that take longer than a second or two; unfinished jobs
        continue at the next start."""


@dataclass(frozen=True)
class StepResult:
    """The result of a finished step, as JSON text, and the version of the workflow that the step belongs to."""

    version: int
    text: str


@dataclass(frozen=True)
class EnqueuedJob:
    """A job, its lane and input, and its progress: how often it has begun, and the results of its steps by name."""

    job: Job
    lane: str
    data: str
    begun: int = 0
    results: Mapping[str, StepResult] = field(default_factory=dict)

    @property
    def organisation(self) -> str:
        """Whose work it is; empty for that of the server."""
        return str(json.loads(self.data).get("org_id", ""))


class Journal(Protocol):
    """What an engine must remember when its process dies. Every write returns when it is durable."""

    async def add(self, enqueued: EnqueuedJob, now: int) -> bool:
        """False when the key exists already."""

    async def get(self, key: str) -> Job | None: ...

    async def unfinished(self) -> list[EnqueuedJob]:
        """Jobs that have not ended, in the order of their enqueueing, with the results of their steps."""

    async def begin(self, key: str) -> None:
        """Marks the job as running and counts this beginning."""

    async def answer(self, key: str, step: str, result: StepResult) -> None:
        """Stores the result of a finished step."""

    async def end(self, job: Job, now: int) -> None:
        """Stores how the job ended and deletes the results of its steps."""

    async def forget(self, before: int, limit: int) -> int:
        """Deletes at most `limit` jobs that ended before that time, and returns how many."""
