"""What an agent needs of a language model: to be asked with messages and tools, at once or piece by piece."""

import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, Protocol, runtime_checkable

from reflexio.agents.values import NO_USAGE, Usage, value
from reflexio.ports.chat import estimate


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's wish to call a tool."""

    name: str
    args: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""


@value
class Message:
    """One message. An assistant's may hold tool calls; a tool's answers the one called `tool_call_id`.

    `raw` is what the model's own client wants to have back: signatures, thoughts.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    tool_name: str = ""
    raw: Any = field(default=None, repr=False, compare=False)


@lru_cache(maxsize=64)
def system(text: str) -> Message:
    """Kept, since an agent and its judge say the same before every question."""
    return Message("system", text)


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model is told of it."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@value
class ModelReply:
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = NO_USAGE
    raw: Any = field(default=None, repr=False, compare=False)


@runtime_checkable
class Model(Protocol):
    """Raises a `ProviderError` that says who must act: `ProviderRefused`, `ProviderUnavailable`, `UnreadableAnswer`."""

    @property
    def name(self) -> str: ...

    async def complete(self, messages: Sequence[Message], *, tools: Sequence[ToolSpec] = ()) -> ModelReply: ...

    def stream(self, messages: Sequence[Message], *, tools: Sequence[ToolSpec] = ()) -> AsyncIterator[str | ModelReply]:
        """Pieces of text, and at the end the whole reply."""


Said = str | ToolCall | Sequence[ToolCall] | ModelReply | Exception
Line = Said | Callable[[Sequence[Message]], Said]


class ScriptedModel:
    """Says each line of a script once, in order: a text, tool calls, an error, or a function of the messages.

    `otherwise` is said when the script is over. `asked` keeps the messages of every call.

    >>> import asyncio
    >>> asyncio.run(ScriptedModel(["Hello."]).complete([Message("user", "Hi")])).text
    'Hello.'
    """

    def __init__(
        self, lines: Iterable[Line] = (), *, otherwise: Line | None = None, name: str = "scripted:model"
    ) -> None:
        self.name = name
        self.asked: list[list[Message]] = []
        self._lines = iter(lines)
        self._otherwise = otherwise

    async def complete(self, messages: Sequence[Message], *, tools: Sequence[ToolSpec] = ()) -> ModelReply:
        return self._say(messages)

    async def stream(
        self, messages: Sequence[Message], *, tools: Sequence[ToolSpec] = ()
    ) -> AsyncIterator[str | ModelReply]:
        reply = self._say(messages)
        for word in re.findall(r"\s*\S+\s*$|\s*\S+", reply.text):
            yield word
        yield reply

    def _say(self, messages: Sequence[Message]) -> ModelReply:
        self.asked.append(list(messages))
        line = next(self._lines, self._otherwise)
        if line is None:
            raise LookupError(f"The script of {self.name!r} has no line left.")
        said = line(messages) if callable(line) else line
        if isinstance(said, Exception):
            raise said
        if isinstance(said, ModelReply):
            return said
        read = sum(estimate(message.content) for message in messages)
        if isinstance(said, str):
            return ModelReply(said, usage=Usage(1, read, estimate(said)))
        calls = (said,) if isinstance(said, ToolCall) else tuple(said)
        return ModelReply("", calls, Usage(1, read, estimate(str(calls))))
