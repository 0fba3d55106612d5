"""The assistant whose behaviour a playbook should change: the user's own program, called turn by turn."""

from collections.abc import Sequence
from typing import Protocol

from reflexio.models.optimisation import ChatMessage, Guidance


class Assistant(Protocol):
    """Answers the last message of a conversation, following one playbook."""

    async def answer(self, messages: Sequence[ChatMessage], guidance: Guidance) -> str:
        """Raises AssistantFailed when all permitted tries gave no readable answer."""

    async def aclose(self) -> None: ...
