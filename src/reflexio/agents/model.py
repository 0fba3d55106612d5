"""Language models for agents: the `Model` protocol, a scripted model, and models by name (`NamedModel`).

Also how a judge or a reflector asks a model one question: for structured data if the model offers that, else in text.
pydantic-ai, which talks to the providers, is imported by the first question to a named model.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable
from weakref import WeakKeyDictionary

from reflexio.agents.attempt import value
from reflexio.agents.budget import NO_USAGE, Usage, price
from reflexio.agents.calls import shown
from reflexio.errors import InvalidRequest
from reflexio.learners.llm.delimiters import Block, cut, delimit
from reflexio.models.extraction import Spend
from reflexio.ports.chat import A, Chat, Messages, Reply, estimate
from reflexio.providers.chat.resolve import ModelAddress, address
from reflexio.settings import Settings

if TYPE_CHECKING:
    from reflexio.agents.pydantic_ai_model import PydanticAIModel

LONGEST_PART = 20_000


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's request to call a tool."""

    name: str
    args: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""


@value
class Message:
    """One message. An assistant's message may hold tool calls; a tool's message answers the call `tool_call_id`.

    `raw` is what the model's own client needs back: signatures, thoughts.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    tool_name: str = ""
    raw: Any = field(default=None, repr=False, compare=False)


@lru_cache(maxsize=64)
def system_message(text: str) -> Message:
    """Cached, since an agent and its judge send the same instructions with every question."""
    return Message("system", text)


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """The description of a tool for a model."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@value
class ModelReply:
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = NO_USAGE
    raw: Any = field(default=None, repr=False, compare=False)

    @property
    def counted_usage(self) -> Usage:
        """The usage; a model that reports no call has made one."""
        return self.usage if self.usage.calls else replace(self.usage, calls=1)


@runtime_checkable
class Model(Protocol):
    """Raises a `ProviderError` that says who must act: `ProviderRefused`, `ProviderUnavailable`, `UnreadableAnswer`."""

    @property
    def name(self) -> str: ...

    async def complete(self, messages: Sequence[Message], *, tools: Sequence[ToolSpec] = ()) -> ModelReply: ...

    def stream(self, messages: Sequence[Message], *, tools: Sequence[ToolSpec] = ()) -> AsyncIterator[str | ModelReply]:
        """Pieces of text, and at the end the whole reply."""


ScriptedReply = str | ToolCall | Sequence[ToolCall] | ModelReply | Exception
Line = ScriptedReply | Callable[[Sequence[Message]], ScriptedReply]


class ScriptedModel:
    """Replies with each line of a script once, in order: a text, tool calls, an error, or a function of the messages.

    `otherwise` is the reply after the end of the script. `asked` holds the messages of every call.

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
        return self._reply(messages)

    async def stream(
        self, messages: Sequence[Message], *, tools: Sequence[ToolSpec] = ()
    ) -> AsyncIterator[str | ModelReply]:
        reply = self._reply(messages)
        for word in re.findall(r"\s*\S+\s*$|\s*\S+", reply.text):
            yield word
        yield reply

    def _reply(self, messages: Sequence[Message]) -> ModelReply:
        self.asked.append(list(messages))
        line = next(self._lines, self._otherwise)
        if line is None:
            raise LookupError(f"The script of {self.name!r} has no line left.")
        reply = line(messages) if callable(line) else line
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, ModelReply):
            return reply
        input_tokens = sum(estimate(message.content) for message in messages)
        if isinstance(reply, str):
            return ModelReply(reply, usage=Usage(1, input_tokens, estimate(reply)))
        calls = (reply,) if isinstance(reply, ToolCall) else tuple(reply)
        return ModelReply("", calls, Usage(1, input_tokens, estimate(str(calls))))


# Models by name. They are opened on first use and once for each event loop: a connection belongs to the loop in which
# it was opened, while agents and judges are often created once and used from several loops.

_OPEN: "WeakKeyDictionary[asyncio.AbstractEventLoop, dict[ModelAddress, asyncio.Task[PydanticAIModel]]]"
_OPEN = WeakKeyDictionary()


class NamedModel:
    """The model called `provider:model`; its key comes from the environment. It also offers structured answers.

    Raises at once `InvalidRequest` for an unknown name and `ProviderRefused` for a missing key.
    """

    def __init__(self, name: str) -> None:
        self._address = address(name, keys=Settings.read().provider_keys)

    @property
    def name(self) -> str:
        return self._address.name

    async def complete(self, messages: Sequence[Message], *, tools: Sequence[ToolSpec] = ()) -> ModelReply:
        return await (await self._connected()).complete(messages, tools)

    async def stream(
        self, messages: Sequence[Message], *, tools: Sequence[ToolSpec] = ()
    ) -> AsyncGenerator[str | ModelReply, None]:
        async with aclosing((await self._connected()).stream(messages, tools)) as pieces:
            async for piece in pieces:
                yield piece

    async def ask(self, messages: Messages, shape: type[A]) -> Reply[A]:
        return await (await self._connected()).ask(messages, shape)

    async def aclose(self) -> None:
        await close_models(self._address)

    async def _connected(self) -> "PydanticAIModel":
        """Importing the provider's client takes a second or two, so it happens in a thread."""
        loop = asyncio.get_running_loop()
        models = _OPEN.setdefault(loop, {})
        opening = models.get(self._address)
        if opening is None or _has_failed(opening):
            opening = models[self._address] = loop.create_task(asyncio.to_thread(_open, self._address))
        return await asyncio.shield(opening)


async def close_models(only: ModelAddress | None = None) -> None:
    """Closes the models that were opened in this event loop."""
    models = _OPEN.get(asyncio.get_running_loop(), {})
    for model in [only] if only is not None else list(models):
        opening = models.pop(model, None)
        if opening is not None:
            await asyncio.wait([opening])
            if not _has_failed(opening):
                await opening.result().aclose()


def _has_failed(opening: "asyncio.Task[PydanticAIModel]") -> bool:
    """Then the caller got the error, the next call opens the model again, and there is nothing to close."""
    return opening.done() and (opening.cancelled() or opening.exception() is not None)


def _open(address: ModelAddress) -> "PydanticAIModel":
    from reflexio.agents.pydantic_ai_model import PydanticAIModel

    return PydanticAIModel(address)


def resolve_model(model: str | Any) -> Any:
    """The model with this name, or the given model."""
    return NamedModel(model) if isinstance(model, str) else model


def check_model(name: str, model: Any) -> None:
    """Raises a TypeError unless this is a model that conversations can be had with."""
    if isinstance(model, type) or not (hasattr(model, "name") and callable(getattr(model, "complete", None))):
        raise TypeError(f'{name}={shown(model)}: give a name like "openai:gpt-5-mini", or a Model with `complete`.')


# One question to one model


@cache
def prompt(name: str) -> str:
    """The text of a prompt in `prompts/`, without its header."""
    path = Path(__file__).parent / "prompts" / f"{name}.md"
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise InvalidRequest(
            f"The prompt {str(path)!r}, a part of this package, cannot be read: {error.strerror}. Install it again."
        ) from error
    return text.removeprefix("---\n").partition("\n---\n")[2].strip()


def is_structured(model: Any) -> bool:
    return hasattr(model, "ask")


async def ask_structured(model: Chat, instructions: str, parts: dict[str, str], schema: type[A]) -> tuple[A, Usage]:
    """The answer as an instance of `schema`. The parts are untrusted text and are delimited in the prompt."""
    blocks = [Block(title, cut(text, LONGEST_PART)) for title, text in parts.items() if text]
    reply = await model.ask(Messages(instructions, delimit(blocks)), schema)
    return reply.answer, usage_of(reply.spend)


async def ask_text(model: Model, instructions: str, case: str) -> tuple[str, Usage]:
    reply = await model.complete((system_message(instructions), Message("user", case)))
    return reply.text, reply.counted_usage


def usage_of(spend: Spend) -> Usage:
    """The usage with its price; scripted models have no price."""
    tokens = spend.input_tokens, spend.output_tokens
    cost = price(spend.model, *tokens) if any(tokens) and not spend.model.startswith("scripted") else 0.0
    return Usage(spend.calls, *tokens, cost)
