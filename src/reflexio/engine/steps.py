"""How one workflow and its steps run. Where their results are stored is decided by the engine."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from reflexio.errors import ReflexioError
from reflexio.ports.work import Job, Json, Workflow

log = logging.getLogger("reflexio")

MAX_ERROR_CHARACTERS = 4000


def to_json(value: Any) -> str:
    # Escaped to ASCII: a lone surrogate or a NUL in a conversation must not make a result impossible to store.
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def _json_round_trip(value: Json) -> Json:
    """The value as it will be read after a crash, so that both runs see the same."""
    return cast(Json, json.loads(to_json(value)))


def _is_task_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


@dataclass
class StepRunner:
    """Returns the stored results of finished steps. Runs the other steps and stores their results."""

    results: Mapping[str, Json]
    store: Callable[[str, Json], Awaitable[None]]
    is_stopped: Callable[[], bool]
    _finished: set[str] = field(default_factory=set)

    async def __call__(self, name: str, act: Callable[[], Awaitable[Json]]) -> Json:
        if self.is_stopped():
            # Not an Exception: a workflow that catches those must not continue.
            raise asyncio.CancelledError(f"stopped before step {name!r}")
        if name in self._finished:
            raise ValueError(f"Two steps of one workflow are named {name!r}; number the steps of a loop.")
        result = self.results[name] if name in self.results else await self._run(name, act)
        self._finished.add(name)
        return result

    async def _run(self, name: str, act: Callable[[], Awaitable[Json]]) -> Json:
        try:
            result = _json_round_trip(await act())
        except asyncio.CancelledError:
            if _is_task_cancelled():
                raise
            # Nobody stopped this step: something that it called cancelled itself.
            raise RuntimeError("The step was cancelled from within.") from None
        await self.store(name, result)
        return result


async def run_workflow(workflow: Workflow, steps: StepRunner, data: Json, job: Job) -> Job:
    """The job as it ended: done with a result, or failed with an error."""
    try:
        return replace(job, state="done", result=_json_round_trip(await workflow(steps, data)))
    except asyncio.CancelledError:
        if steps.is_stopped() or _is_task_cancelled():
            raise
        return replace(job, state="failed", error="The workflow was cancelled from within.")
    except Exception as error:
        # This is the worker loop: an error ends this job and no other.
        message = (str(error) or type(error).__name__)[:MAX_ERROR_CHARACTERS]
        log.warning("%s %r failed: %s", job.name, job.key, message, exc_info=not isinstance(error, ReflexioError))
        return replace(job, state="failed", error=message)
