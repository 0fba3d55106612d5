"""The scripted twin of a chat model: answers as told, keeps what was asked, costs what a model would."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ValidationError

from reflexio.errors import ProviderError, UnreadableAnswer
from reflexio.models.learned import Spend
from reflexio.ports.chat import A, Messages, Reply, estimate

Said = BaseModel | dict[str, Any] | str | Exception
"""What a model says: a value, JSON as data or as text, or an error."""
Line = Said | Callable[[Messages], Said]


class ScriptedChat:
    """Says each line of a script once, in order. A line that does not fit the shape is repaired by the next one.

    >>> import asyncio
    >>> class Colour(BaseModel):
    ...     name: str
    >>> chat = ScriptedChat(["no idea", {"name": "blue"}])
    >>> reply = asyncio.run(chat.ask(Messages("Name a colour.", "The sky."), Colour))
    >>> reply.answer, reply.spend.calls
    (Colour(name='blue'), 2)
    """

    def __init__(self, lines: Iterable[Line] = (), *, name: str = "scripted:lines") -> None:
        self.name = name
        self.asked: list[Messages] = []
        self._lines = iter(lines)

    async def ask(self, messages: Messages, shape: type[A]) -> Reply[A]:
        self.asked.append(messages)
        spend = Spend(self.name)
        try:
            said, spend = self._say(messages, spend)
            try:
                return Reply(_read(said, shape), spend)
            except ValidationError as error:
                repair = replace(messages, case=f"{messages.case}\n{error}")
            said, spend = self._say(repair, spend)
            return Reply(_read(said, shape), spend)
        except ValidationError as error:
            raise UnreadableAnswer(f"{self.name}: {error}", spend=spend) from error

    async def aclose(self) -> None:
        """Nothing is held."""

    def _say(self, messages: Messages, spent: Spend) -> tuple[BaseModel | dict[str, Any] | str, Spend]:
        try:
            line = next(self._lines)
        except StopIteration:
            raise LookupError(f"The script of {self.name!r} has no line left.") from None
        said = line(messages) if callable(line) and not isinstance(line, BaseModel) else line
        asked = Spend(self.name, calls=1, input_tokens=estimate(messages.instructions + messages.case))
        if isinstance(said, ProviderError):
            raise type(said)(said.detail, **{**said.values, "spend": spent + replace(asked, input_tokens=0)})
        if isinstance(said, Exception):
            raise said
        return said, spent + replace(asked, output_tokens=estimate(str(said)))


def _read(said: BaseModel | dict[str, Any] | str, shape: type[A]) -> A:
    return shape.model_validate_json(said) if isinstance(said, str) else shape.model_validate(said)
