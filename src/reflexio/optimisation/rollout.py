"""Rollouts: playing a scenario with the assistant. Each call is a durable step, so it is made and paid for once."""

import asyncio
from dataclasses import dataclass, field

from reflexio.errors import AssistantFailed
from reflexio.models.optimisation import ChatMessage, Guidance, Rollout, Scenario
from reflexio.optimisation.replay_windows import digest
from reflexio.ports.assistant import Assistant
from reflexio.ports.work import Json, Steps


@dataclass
class RolloutPlayer:
    """Plays scenarios with one assistant, each wording once in each scenario.

    So every candidate is compared with the same rollout of the incumbent. `calls` also counts calls before a crash.
    """

    steps: Steps
    assistant: Assistant
    calls: int = 0
    _rollouts: dict[tuple[str, str], "asyncio.Future[Rollout]"] = field(default_factory=dict)

    async def rollout(self, scenario: Scenario, guidance: Guidance) -> Rollout:
        key = (guidance.content, scenario.key)
        if key not in self._rollouts:
            self._rollouts[key] = asyncio.ensure_future(self._play(scenario, guidance))
        return await self._rollouts[key]

    async def _play(self, scenario: Scenario, guidance: Guidance) -> Rollout:
        """The assistant answers every user turn of the script and sees all turns before it. A failure ends it."""
        messages = list(scenario.history)
        answers: list[str] = []

        async def call() -> Json:
            try:
                return {"content": await self.assistant.answer(tuple(messages), guidance)}
            except AssistantFailed as error:
                # A failure is stored like an answer: after a crash the search must take the same path again.
                return {"error": str(error)}

        for message in scenario.script:
            messages.append(message)
            if message.role != "user":
                continue
            answer = await self.steps(f"answer/{digest(guidance.content)}/{scenario.key}/{len(answers)}", call)
            self.calls += 1
            if "error" in answer:
                return Rollout(tuple(answers), str(answer["error"]))
            answers.append(str(answer["content"]))
            messages.append(ChatMessage("assistant", answers[-1]))
        return Rollout(tuple(answers))
