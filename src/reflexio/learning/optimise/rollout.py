"""Playing a scene with the assistant, call by call. Each call is a durable step: it is made, and paid for, once."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from reflexio.errors import AssistantFailed
from reflexio.learning.optimise.windows import digest
from reflexio.models.rollout import Guidance, Message, Rollout, Scene
from reflexio.ports.assistant import Assistant
from reflexio.ports.work import Json, Steps


@dataclass
class Stage:
    """One assistant. Counts the calls that were made, before a crash too."""

    steps: Steps
    assistant: Assistant
    calls: int = 0

    async def play(self, scene: Scene, guidance: Guidance) -> Rollout:
        """Every user turn of the script is answered, with all that was said before. A failed answer ends it."""
        said = list(scene.history)
        answers: list[str] = []
        for line in scene.script:
            said.append(line)
            if line.role != "user":
                continue
            name = f"answer/{digest(guidance.content)}/{scene.key}/{len(answers)}"
            got = await self.steps(name, self._asking(tuple(said), guidance))
            self.calls += 1
            if "error" in got:
                return Rollout(tuple(answers), str(got["error"]))
            answers.append(str(got["content"]))
            said.append(Message("assistant", answers[-1]))
        return Rollout(tuple(answers))

    def _asking(self, said: tuple[Message, ...], guidance: Guidance) -> Callable[[], Awaitable[Json]]:
        async def ask() -> Json:
            try:
                return {"content": await self.assistant.answer(said, guidance)}
            except AssistantFailed as error:
                # A failure is an answer too: after a crash the search must take the same way as before it.
                return {"error": str(error)}

        return ask


@dataclass
class Rollouts:
    """Each wording is played in each scene once, whoever asks. So the incumbent is: every candidate meets the same."""

    stage: Stage
    _made: dict[tuple[str, str], "asyncio.Future[Rollout]"] = field(default_factory=dict)

    async def of(self, scene: Scene, guidance: Guidance) -> Rollout:
        which = (guidance.content, scene.key)
        if which not in self._made:
            self._made[which] = asyncio.ensure_future(self.stage.play(scene, guidance))
        return await self._made[which]
