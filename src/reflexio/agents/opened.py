"""Models by the names that the server takes, opened when they are first asked and once for each event loop.

A connection belongs to the loop it was made in, while agents and judges are often made once and used from several.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from reflexio.agents.model import Message, ModelReply, ToolSpec
from reflexio.ports.chat import A, Messages, Reply
from reflexio.providers.chat.resolve import ModelAddress, address
from reflexio.settings import Settings

if TYPE_CHECKING:
    from reflexio.agents.conversation import Conversation

_OPEN: "WeakKeyDictionary[asyncio.AbstractEventLoop, dict[ModelAddress, asyncio.Task[Conversation]]]" = (
    WeakKeyDictionary()
)


class NamedModel:
    """The model called `provider:model`; its key comes from the environment. Offers structured answers, too.

    Raises at once `InvalidRequest` for a name that nobody knows and `ProviderRefused` for a missing key.
    """

    def __init__(self, name: str) -> None:
        self._address = address(name, keys=Settings.read().provider_keys)

    @property
    def name(self) -> str:
        return self._address.name

    async def complete(self, messages: Sequence[Message], *, tools: Sequence[ToolSpec] = ()) -> ModelReply:
        return await (await self._opened()).complete(messages, tools)

    async def stream(
        self, messages: Sequence[Message], *, tools: Sequence[ToolSpec] = ()
    ) -> AsyncGenerator[str | ModelReply, None]:
        async with aclosing((await self._opened()).stream(messages, tools)) as pieces:
            async for piece in pieces:
                yield piece

    async def ask(self, messages: Messages, shape: type[A]) -> Reply[A]:
        return await (await self._opened()).ask(messages, shape)

    async def aclose(self) -> None:
        await close_models(self._address)

    async def _opened(self) -> "Conversation":
        """Importing the provider's client takes a second or two, so a thread does it."""
        loop = asyncio.get_running_loop()
        here = _OPEN.setdefault(loop, {})
        opening = here.get(self._address)
        if opening is None or _has_failed(opening):
            opening = here[self._address] = loop.create_task(asyncio.to_thread(_open, self._address))
        return await asyncio.shield(opening)


async def close_models(only: ModelAddress | None = None) -> None:
    """Closes what was opened in this event loop."""
    here = _OPEN.get(asyncio.get_running_loop(), {})
    for each in [only] if only is not None else list(here):
        opening = here.pop(each, None)
        if opening is not None:
            await asyncio.wait([opening])
            if not _has_failed(opening):
                await opening.result().aclose()


def _has_failed(opening: "asyncio.Task[Conversation]") -> bool:
    """Who asked for it was told; it is tried anew, and there is nothing to close."""
    return opening.done() and (opening.cancelled() or opening.exception() is not None)


def named(model: str | Any) -> Any:
    return NamedModel(model) if isinstance(model, str) else model


def _open(where: ModelAddress) -> "Conversation":
    from reflexio.agents.conversation import Conversation

    return Conversation(where)
