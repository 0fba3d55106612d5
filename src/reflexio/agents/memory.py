"""Working memory: named blocks of text that an agent reads before it acts, apart for every user."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from reflexio.agents.bullets import escaped
from reflexio.agents.values import value


@value
class MemoryBlock:
    name: str
    content: str

    def format(self) -> str:
        """For a prompt: between tags of its name, which nothing inside can close."""
        return f"<{self.name}>\n{escaped(self.content)}\n</{self.name}>"


@runtime_checkable
class Memory(Protocol):
    """Blocks by user. No user (None) is a user of its own."""

    async def working(self, *, user_id: str | None = None) -> Sequence[MemoryBlock]: ...

    async def update_block(self, name: str, content: str, *, user_id: str | None = None) -> None: ...

    async def append_block(self, name: str, content: str, *, user_id: str | None = None) -> None:
        """Adds a line to the block. Two callers at once lose neither line."""

    async def forget(self, *, user_id: str | None = None) -> None: ...


class InMemoryMemory:
    """Memory that lasts as long as the process."""

    def __init__(self) -> None:
        self._blocks: dict[str | None, dict[str, str]] = {}

    async def working(self, *, user_id: str | None = None) -> list[MemoryBlock]:
        return [MemoryBlock(name, content) for name, content in self._blocks.get(user_id, {}).items()]

    async def update_block(self, name: str, content: str, *, user_id: str | None = None) -> None:
        self._blocks.setdefault(user_id, {})[name] = content

    async def append_block(self, name: str, content: str, *, user_id: str | None = None) -> None:
        blocks = self._blocks.setdefault(user_id, {})
        blocks[name] = f"{blocks[name]}\n{content}" if blocks.get(name) else content

    async def forget(self, *, user_id: str | None = None) -> None:
        self._blocks.pop(user_id, None)


class Overlay:
    """A memory as one run sees it: one block is what its attempt was given, whatever others write meanwhile."""

    def __init__(self, memory: Memory, name: str) -> None:
        self._memory = memory
        self._name = name
        self.content = ""

    async def working(self, *, user_id: str | None = None) -> list[MemoryBlock]:
        blocks = [each for each in await self._memory.working(user_id=user_id) if each.name != self._name]
        if self.content:
            blocks.append(MemoryBlock(self._name, self.content))
        return blocks

    async def update_block(self, name: str, content: str, *, user_id: str | None = None) -> None:
        await self._memory.update_block(name, content, user_id=user_id)

    async def append_block(self, name: str, content: str, *, user_id: str | None = None) -> None:
        await self._memory.append_block(name, content, user_id=user_id)

    async def forget(self, *, user_id: str | None = None) -> None:
        await self._memory.forget(user_id=user_id)
