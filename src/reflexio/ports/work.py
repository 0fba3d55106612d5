"""Durable work: workflows made of steps. A finished step is never run, or paid for, twice."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Json = dict[str, Any]
State = Literal["queued", "running", "done", "failed", "cancelled"]
ENDED: frozenset[State] = frozenset({"done", "failed", "cancelled"})


class Steps(Protocol):
    """What a workflow does its work with."""

    async def __call__(self, name: str, act: Callable[[], Awaitable[Json]]) -> Json:
        """Runs `act` once and remembers its answer; after a crash the answer is given without running it again.

        A step is known by its name: each name is finished at most once in a workflow (number the steps of a loop),
        and a second use of a finished name raises ValueError. An error is raised to the workflow and not remembered,
        so that a workflow that is tried again makes the step again. The answer is JSON, and comes back as JSON would
        bring it back: tuples as lists, keys as strings.
        """
        ...


Workflow = Callable[[Steps, Json], Awaitable[Json]]


@dataclass(frozen=True)
class Job:
    """A workflow that was asked for, under the key that makes it unique."""

    key: str
    name: str
    state: State
    result: Json | None = None
    error: str = ""


class Work(Protocol):
    """Runs the workflows that wiring registers; knows none by name."""

    def register(self, name: str, workflow: Workflow, *, version: int = 1) -> None:
        """Before `start`. Raise the version when the steps of a workflow change their meaning: a job that finished
        steps under another version fails instead of going on with answers to other questions."""
        ...

    async def start(self) -> None:
        """Begins to work, first on what a crash left unfinished.

        Calls that come meanwhile wait for it. Raises StorageTaken when another process does this work already.
        """
        ...

    async def ready(self) -> None:
        """Returns once work is done here. Raises StorageTaken while another process does it."""
        ...

    async def enqueue(self, name: str, key: str, data: Json, *, lane: str) -> Job:
        """Asks for a workflow. The same key is the same job, whatever its state. Raises NotFound for a workflow
        that is not registered, TypeError or ValueError for data that is not JSON.

        Jobs of one `lane` run one after the other in the order asked for; lanes run side by side, up to the
        configured concurrency, and none starves.
        """
        ...

    async def wait(self, key: str) -> Job:
        """Returns when the job has ended, at once after it has. Raises NotFound when there is no such job, and
        StorageUnavailable when the engine is closed first."""
        ...

    async def get(self, key: str) -> Job | None: ...

    async def cancel(self, key: str) -> bool:
        """Ends the job: its waiting callers are told now, and a step at hand is its last. False when there is
        nothing to end. The next job of the lane still waits for that step."""
        ...

    async def forget(self, before: int) -> int:
        """Forgets jobs that ended before that time and says how many; their keys may be used again."""
        ...

    async def close(self) -> None:
        """Stops after the steps at hand, or in the midst of those that take longer than a second or two; what is
        unfinished goes on at the next start."""
        ...


@dataclass(frozen=True)
class Answer:
    """What a finished step said, as JSON, and the version of the workflow that it was a step of."""

    version: int
    text: str


@dataclass(frozen=True)
class Asked:
    """A job as it was asked for, and how far it came: how often it was begun, and the answers of its steps."""

    job: Job
    lane: str
    data: str
    begun: int = 0
    answers: Mapping[str, Answer] = field(default_factory=dict)


class Journal(Protocol):
    """What an engine must remember when its process dies. Every call returns when that is certain."""

    async def add(self, asked: Asked, now: int) -> bool:
        """False when the key is there already."""
        ...

    async def get(self, key: str) -> Job | None: ...

    async def unfinished(self) -> list[Asked]:
        """Jobs that have not ended, in the order asked for, with their answers."""
        ...

    async def begin(self, key: str) -> None:
        """The job runs, once more than before."""
        ...

    async def answer(self, key: str, step: str, answer: Answer) -> None: ...

    async def end(self, job: Job, now: int) -> None:
        """Keeps how the job ended; the answers of its steps are no longer needed."""
        ...

    async def forget(self, before: int, limit: int) -> int:
        """Forgets at most `limit` jobs that ended before that time, and says how many."""
        ...
