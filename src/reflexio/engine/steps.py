"""What a step, an answer and an outcome are. Where answers are kept is the engine's to say."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from reflexio.errors import ReflexioError
from reflexio.ports.work import Json, Workflow

log = logging.getLogger("reflexio")

Act = Callable[[], Awaitable[Json]]
LONGEST_ERROR = 4000
CLOSED = "The engine is closed; what is unfinished goes on at the next start."


@dataclass(frozen=True)
class Registered:
    """A workflow and the version of its steps."""

    workflow: Workflow
    version: int


@dataclass(frozen=True)
class Outcome:
    """How a workflow ended."""

    state: Literal["done", "failed"]
    result: Json | None = None
    error: str = ""


def as_text(value: Any) -> str:
    # Escaped to ASCII: half a character or a NUL in a conversation must not make its answer impossible to keep.
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def through_json(value: Json) -> Json:
    """The value as it will come back after a crash, so that both runs see the same."""
    return cast(Json, json.loads(as_text(value)))


async def answer_of(act: Act) -> Json:
    try:
        return through_json(await act())
    except asyncio.CancelledError:
        if _is_cancelled():
            raise
        # Nobody stopped this step: something that it called gave up by itself.
        raise RuntimeError("The step was cancelled from within.") from None


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class NamedSteps:
    """Gives the answers that are known already and has the others made and kept."""

    def __init__(
        self,
        known: Mapping[str, Json],
        keep: Callable[[str, Act], Awaitable[Json]],
        is_stopped: Callable[[], bool],
    ) -> None:
        self._known = known
        self._keep = keep
        self.is_stopped = is_stopped
        self._finished: set[str] = set()

    async def __call__(self, name: str, act: Act) -> Json:
        if self.is_stopped():
            # Not an Exception: a workflow that catches those must not go on.
            raise asyncio.CancelledError(f"stopped before step {name!r}")
        if name in self._finished:
            raise ValueError(f"Two steps of one workflow are named {name!r}; number the steps of a loop.")
        answer = self._known[name] if name in self._known else await self._keep(name, act)
        self._finished.add(name)
        return answer


async def outcome_of(workflow: Workflow, steps: NamedSteps, data: Json, *, label: str) -> Outcome:
    try:
        return Outcome("done", through_json(await workflow(steps, data)))
    except asyncio.CancelledError:
        if steps.is_stopped() or _is_cancelled():
            raise
        return Outcome("failed", error="The workflow was cancelled from within.")
    except Exception as error:
        # This is the worker loop: whatever went wrong is this job's alone.
        message = (str(error) or type(error).__name__)[:LONGEST_ERROR]
        log.warning("%s failed: %s", label, message, exc_info=not isinstance(error, ReflexioError))
        return Outcome("failed", error=message)


def unregistered(name: str) -> Outcome:
    return Outcome("failed", error=f"This Reflexio has no workflow {name!r}.")


def changed(name: str, found: int, known: int) -> Outcome:
    return Outcome(
        "failed", error=f"The workflow {name!r} changed (version {found}, now {known}) after steps were finished."
    )
