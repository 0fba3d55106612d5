"""A chat model behind pydantic-ai."""

import asyncio
from typing import TYPE_CHECKING

from reflexio.ports.chat import A, Messages, Reply
from reflexio.providers.chat.resolve import Address

if TYPE_CHECKING:
    from reflexio.providers.chat.session import Session


class PydanticChat:
    """Asks the model at `address`. Used from one event loop, and closed there.

    pydantic-ai takes one to two seconds to import. The first question does that, in a thread, so that a server
    starts at once and goes on answering.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._opening = asyncio.Lock()
        self._session: Session | None = None

    @property
    def name(self) -> str:
        return self._address.name

    async def ask(self, messages: Messages, shape: type[A]) -> Reply[A]:
        session = await self._opened()
        return await session.ask(messages, shape)

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.aclose()

    async def _opened(self) -> "Session":
        async with self._opening:
            if self._session is None:
                self._session = await asyncio.to_thread(_open, self._address)
            return self._session


def _open(address: Address) -> "Session":
    from reflexio.providers.chat.session import Session

    return Session(address)
