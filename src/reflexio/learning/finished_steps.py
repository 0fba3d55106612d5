"""Steps of a window that outlive a failed attempt: a model call that was paid for is not made again.

They count for the same turns, learner and types; when one of these changes, the model is asked anew.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from reflexio.learning.window import WindowTask
from reflexio.models.config import Config
from reflexio.ports.clock import Clock
from reflexio.ports.learner import Learner
from reflexio.ports.storage import FinishedStep, Store, Tx
from reflexio.ports.work import Json, Steps

PAID = "calls"
"""The entry of a step's result that counts the model calls it took."""
ASKED_FOR = {"profile_extractor_configs", "playbook_configs", "agent_context_prompt", "tool_can_use"}
"""What of the configuration a learner is asked with."""


def setup_of(learner: Learner, types: Config) -> str:
    """What a result depends on beside the turns."""
    asked_for = types.model_dump_json(include=ASKED_FOR)
    return blake2b("\0".join((learner.name, learner.fingerprint, asked_for)).encode(), digest_size=16).hexdigest()


def window_key(task: WindowTask) -> str:
    """The same for all attempts at a window."""
    return f"{task.by_hand}:{task.turns[0]}-{task.turns[-1]}"


def begun_windows(steps: Sequence[FinishedStep]) -> list[tuple[int, ...]]:
    """The turns of windows that were partly paid for: they are planned with exactly these turns again."""
    return [step.turn_ids for step in steps if step.window_key.startswith(":")]


@dataclass(frozen=True)
class PaidSteps:
    """Steps of one window. `finished` are the results that earlier attempts have paid for, by name."""

    steps: Steps
    store: Store
    clock: Clock
    task: WindowTask
    setup: str
    finished: Mapping[str, Json]

    @classmethod
    def of(
        cls, steps: Steps, store: Store, clock: Clock, task: WindowTask, setup: str, stored: Sequence[FinishedStep]
    ) -> "PaidSteps":
        fitting = {
            step.step: step.result
            for step in stored
            if (step.window_key, step.turn_ids, step.setup) == (window_key(task), task.turns, setup)
        }
        return cls(steps, store, clock, task, setup, fitting)

    async def __call__(self, name: str, act: Callable[[], Awaitable[Json]]) -> Json:
        async def run() -> Json:
            if name in self.finished:
                return self.finished[name]
            result = await act()
            if result.get(PAID):
                await self.store.write(lambda tx: self._keep(tx, name, result))
            return result

        return await self.steps(name, run)

    def _keep(self, tx: Tx, name: str, result: Json) -> None:
        if len(tx.interactions.many(self.task.turns)) < len(self.task.turns):
            return  # erased meanwhile: the result would quote what is gone
        task, now = self.task, self.clock.now()
        tx.windows.keep_step(
            FinishedStep(task.user_id, window_key(task), name, self.setup, task.turns, result, created_at=now)
        )
