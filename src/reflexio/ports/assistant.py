"""The assistant whose behaviour a playbook is meant to change: somebody else's program, asked turn by turn."""

from collections.abc import Sequence
from typing import Protocol

from reflexio.models.rollout import Guidance, Message


class Assistant(Protocol):
    """Answers the last message, with one playbook at hand."""

    async def answer(self, messages: Sequence[Message], guidance: Guidance) -> str:
        """Raises AssistantFailed when it gives no answer that can be read, after the tries it is allowed."""
        ...

    async def aclose(self) -> None: ...
