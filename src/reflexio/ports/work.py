"""Durable work: workflows made of steps. A finished step never runs, or costs money, a second time."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Json = dict[str, Any]
State = Literal["queued", "running", "done", "failed", "cancelled"]
ENDED: frozenset[State] = frozenset({"done", "failed", "cancelled"})
LEASE_SECONDS = 4.0
"""How long a worker may be silent before others take over its jobs."""


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
        """Starts working, first on the jobs that a crash left unfinished. A process that only asks never calls this."""

    async def ready(self) -> None:
        """Returns when somebody does the work, in this process or another. Raises NoWorker when nobody has for a
        while."""

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


class Leadership(Protocol):
    """Which worker runs the schedules."""

    async def acquire(self) -> None:
        """Returns once this process leads."""

    async def lost(self) -> None:
        """Returns when it does not lead any more."""

    async def is_taken(self) -> bool:
        """Whether any process leads, that is, whether there is a worker."""

    async def release(self) -> None: ...


@dataclass(frozen=True)
class StepResult:
    """The result of a finished step, as JSON text, and the version of the workflow that the step belongs to."""

    version: int
    text: str


@dataclass(frozen=True)
class EnqueuedJob:
    """A job with its lane and input, and whose work it is: empty for that of the server."""

    job: Job
    lane: str
    data: str
    organisation: str = ""


@dataclass(frozen=True)
class WaitingJob:
    """The first job of a lane that nobody works on, and whose work it is: empty for that of the server."""

    key: str
    lane: str
    organisation: str


@dataclass(frozen=True)
class ClaimedJob:
    """A job that one worker runs, with the results of its finished steps by name.

    `claim` counts how often it was claimed. It is the proof that a write comes from the last claimant: a worker that
    slept while another took its job cannot change that job any more.
    """

    job: Job
    data: str
    claim: int = 1
    results: Mapping[str, StepResult] = field(default_factory=dict)


class LeaderLease(Protocol):
    """A lease in the database that one process holds at a time."""

    async def lead(self, holder: str) -> bool:
        """Takes or renews it; False while another process holds it."""

    async def has_leader(self) -> bool: ...

    async def resign(self, holder: str) -> None: ...


class Journal(LeaderLease, Protocol):
    """What engines share, of one process or many. Every write returns when it is durable.

    A claimed job has a lease of `LEASE_SECONDS`. When it expires, another worker may claim the job.
    """

    async def add(self, enqueued: EnqueuedJob, now: int) -> bool:
        """Appends a job to its lane. False when the key exists already."""

    async def get(self, key: str) -> Job | None: ...

    async def ended(self, keys: Collection[str]) -> list[Job]:
        """Those that have ended, of some jobs."""

    async def waiting(self, most: int) -> list[WaitingJob]:
        """Jobs that may be claimed, oldest first: one of each lane."""

    async def claim(self, worker: str, keys: Collection[str]) -> list[ClaimedJob]:
        """Takes those of some jobs that nobody has taken meanwhile."""

    async def beat(self, worker: str) -> dict[str, State]:
        """Renews the leases of a worker; returns the jobs it still has, by key."""

    async def answer(self, claimed: ClaimedJob, step: str, result: StepResult) -> None:
        """Stores the result of a finished step. Raises LeaseLost."""

    async def end(self, claimed: ClaimedJob, job: Job, now: int) -> None:
        """Stores how the job ended, deletes the results of its steps, and frees its lane. Raises LeaseLost."""

    async def cancel(self, key: str, now: int) -> bool:
        """Ends a job as cancelled. Its lane is free when its worker has stopped. False when it has ended."""

    async def free_lane(self, claimed: ClaimedJob) -> None:
        """The worker has stopped the running step of a cancelled job."""

    async def give_back(self, worker: str) -> None:
        """A worker stops: others may continue its jobs at once."""

    async def adopt(self) -> None:
        """Gives back what everybody has. Only for a process that knows itself to be the only worker."""

    async def forget(self, before: int, limit: int) -> int:
        """Deletes at most `limit` jobs that ended before that time, and returns how many."""
