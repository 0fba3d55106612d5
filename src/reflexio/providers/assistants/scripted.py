"""The scripted twin of an assistant: answers as told and keeps what it was asked."""

from collections.abc import Callable, Sequence

from reflexio.models.rollout import Guidance, Message

Line = str | Exception
Say = Callable[[Sequence[Message], Guidance], Line]


class ScriptedAssistant:
    """Answers what `say` makes of the conversation and the playbook; an exception is raised."""

    def __init__(self, say: Say) -> None:
        self.asked: list[tuple[tuple[Message, ...], Guidance]] = []
        self._say = say

    async def answer(self, messages: Sequence[Message], guidance: Guidance) -> str:
        self.asked.append((tuple(messages), guidance))
        said = self._say(messages, guidance)
        if isinstance(said, Exception):
            raise said
        return said

    async def aclose(self) -> None:
        """Nothing is held."""
