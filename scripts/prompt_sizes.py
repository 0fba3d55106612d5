"""Prints the tokens of every prompt: its stable prefix, which providers cache from 1,024 tokens on, and the rest.

The prefix is the schema of the answer and the instructions; the rest is what an ordinary case adds. Four characters
count as a token.
"""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from reflexio.learners.llm.critic import LlmCritic
from reflexio.learners.llm.learner import LlmLearner
from reflexio.models.config import Config
from reflexio.models.extraction import ClusterToSummarise, ExtractedLearning, Neighbour, Neighbourhood, Turn, Window
from reflexio.models.learning import Kind, Learning
from reflexio.models.optimisation import ChatMessage, Guidance, Scenario
from reflexio.ports.chat import A, Messages, Reply, estimate
from reflexio.ports.learner import RewordRequest

CACHED_FROM = 1_024
SENTENCE = "The parcel was promised for Friday, and nobody has written to me since then. "


@dataclass
class RecordingChat:
    """Keeps each question and its schema, and answers nothing."""

    name: str = "recording"
    asked: list[tuple[Messages, type[BaseModel]]] = field(default_factory=list)

    async def ask(self, messages: Messages, schema: type[A]) -> Reply[A]:
        self.asked.append((messages, schema))
        return Reply(
            schema.model_construct(profiles=[], playbooks=[], forget=[], decisions=[], rule=None, verdict="tie")
        )

    async def aclose(self) -> None:
        """Holds nothing open."""


async def sizes() -> dict[str, tuple[int, int]]:
    """Tokens of the stable prefix and of the rest, by the name of the prompt."""
    chat = RecordingChat()
    learner, critic = LlmLearner(chat), LlmCritic(chat, chat)
    turns = tuple(Turn(1 + n, "agent" if n % 2 else "user", SENTENCE * 2, at=1_772_373_900) for n in range(10))
    await learner.extract(Window("ann", "", turns), Config(), frozenset({Kind.PROFILE, Kind.USER_PLAYBOOK}))
    stored = tuple(Neighbour(Learning(Kind.PROFILE, SENTENCE, id=n), 0.8) for n in range(1, 4))
    candidate = ExtractedLearning(Kind.PROFILE, "profile", SENTENCE)
    await learner.consolidate([Neighbourhood(candidate, stored)] * 2, Config())
    members = tuple(Learning(Kind.USER_PLAYBOOK, SENTENCE, id=n, trigger="A parcel is late") for n in range(1, 9))
    await learner.summarise(ClusterToSummarise("other", members, 8), Config())
    lines = tuple(ChatMessage("assistant" if n % 2 else "user", SENTENCE) for n in range(6))
    scenario = Scenario("k", "ann", 1, (1,), lines, lines[:1], (1,), SENTENCE)
    for question in (
        critic.compare(scenario, "A parcel is late", lines, lines),
        critic.reword(RewordRequest(Guidance(1, SENTENCE), ())),
    ):
        try:
            await question
        except AttributeError:  # the answer is empty; the question is what counts
            continue
    names = ("extract", "consolidate", "summarise", "judge", "reword")
    return {name: _size(*asked) for name, asked in zip(names, chat.asked, strict=True)}


def _size(messages: Messages, schema: type[Any]) -> tuple[int, int]:
    stable = json.dumps(schema.model_json_schema(), separators=(",", ":")) + messages.instructions
    return estimate(stable), estimate(messages.case)


if __name__ == "__main__":
    for prompt, (stable, rest) in asyncio.run(sizes()).items():
        note = "cached" if stable >= CACHED_FROM else "short"
        print(f"{prompt:12} stable {stable:5} ({note})   rest {rest:5}")
