"""Durable work: workflows made of steps. A finished step is never run, or paid for, twice."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Json = dict[str, Any]
State = Literal["queued", "running", "done", "failed", "cancelled"]


class Steps(Protocol):
    """What a workflow does its work with."""

    async def __call__(self, name: str, act: Callable[[], Awaitable[Json]]) -> Json:
        """Runs `act` once and remembers its answer; after a crash the answer is given without running it again.

        Steps of one workflow have stable names and run in a stable order. An error is raised to the workflow and
        not remembered, so that a workflow that is tried again makes the step again.
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

    def register(self, name: str, workflow: Workflow) -> None:
        """Before `start`."""
        ...

    async def start(self) -> None:
        """Begins to work, first on what a crash left unfinished."""
        ...

    async def enqueue(self, name: str, key: str, data: Json, *, lane: str) -> Job:
        """Asks for a workflow. The same key is the same job, whatever its state.

        Jobs of one `lane` run one after the other in the order asked for; lanes run side by side, up to the
        configured concurrency, and none starves.
        """
        ...

    async def wait(self, key: str) -> Job:
        """Returns when the job has ended, at once after it has. Raises NotFound when there is no such job."""
        ...

    async def get(self, key: str) -> Job | None: ...

    async def cancel(self, key: str) -> bool:
        """Stops before the next step; False when it has ended already."""
        ...

    async def close(self) -> None:
        """Stops after the steps at hand; what is unfinished goes on at the next start."""
        ...
