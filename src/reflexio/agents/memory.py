"""Working memory: named blocks of text that an agent reads before it acts, separate for every user.

Also lessons in a block of it, which the Reflexion architecture uses when it has no lesson store.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from reflexio.agents.attempt import Lesson, bullet, escape_tags, value
from reflexio.agents.lessons.correction import disagreement
from reflexio.agents.lessons.store import Recalled, Saved, save_lock


@value
class MemoryBlock:
    name: str
    content: str

    def format(self) -> str:
        """For a prompt: between tags of its name, which nothing inside can close."""
        return f"<{self.name}>\n{escape_tags(self.content)}\n</{self.name}>"


@runtime_checkable
class Memory(Protocol):
    """Blocks by user. No user (None) counts as one more user."""

    async def working(self, *, user_id: str | None = None) -> Sequence[MemoryBlock]: ...

    async def update_block(self, name: str, content: str, *, user_id: str | None = None) -> None: ...

    async def append_block(self, name: str, content: str, *, user_id: str | None = None) -> None:
        """Adds a line to the block. Concurrent calls lose no line."""

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


class MemoryOverlay:
    """A memory as one run sees it: one block has the content of the run, whatever other runs write meanwhile."""

    def __init__(self, memory: Memory, name: str) -> None:
        self._memory = memory
        self._name = name
        self.content = ""
        self.update_block, self.append_block, self.forget = memory.update_block, memory.append_block, memory.forget

    async def working(self, *, user_id: str | None = None) -> list[MemoryBlock]:
        blocks = [block for block in await self._memory.working(user_id=user_id) if block.name != self._name]
        return [*blocks, MemoryBlock(self._name, self.content)] if self.content else blocks


class BlockLessons:
    """Lessons in a block of working memory: every later run of the user is shown all of them.

    All are kept, or the newest `max_lessons`, except for those that a newer one corrects.

    It is created for one run, which is shown the block as it was when the run started. So concurrent runs write
    into one block and never read each other's lessons.
    """

    def __init__(self, memory: Memory, block: str, max_lessons: int | None = None) -> None:
        self.place = block
        self._max_lessons = max_lessons
        self._memory = memory
        self._recalled: list[Recalled] | None = None

    async def recall(
        self, task: str, *, k: int, user_id: str | None, agent_version: str, min_similarity: float | None
    ) -> list[Recalled]:
        if self._recalled is None:
            blocks = await self._memory.working(user_id=user_id)
            lines = [line for block in blocks if block.name == self.place for line in block.content.splitlines()]
            newest_first = [line.removeprefix("- ").strip() for line in reversed(lines)]
            self._recalled = [Recalled(Lesson(line, user_id=user_id)) for line in newest_first if line]
        return self._recalled[:k]

    async def save(self, lessons: Sequence[Lesson]) -> list[Saved]:
        for lesson in lessons:
            async with save_lock(id(self._memory), self.place, lesson.user_id):
                await self._save(lesson)
        return [Saved("") for _ in lessons]

    async def _save(self, lesson: Lesson) -> None:
        """Appends the lesson, in place of those that it corrects, and keeps the newest."""
        line = bullet(lesson.content)
        blocks = await self._memory.working(user_id=lesson.user_id)
        lines = [line for block in blocks if block.name == self.place for line in block.content.splitlines()]
        kept = [known for known in lines if not disagreement(lesson.content, known.removeprefix("- "))]
        kept = kept if self._max_lessons is None else [*kept, line][-self._max_lessons :][:-1]
        if kept == lines:
            await self._memory.append_block(self.place, line, user_id=lesson.user_id)
        else:
            await self._memory.update_block(self.place, "\n".join([*kept, line]), user_id=lesson.user_id)

    async def outcome(self, run_id: str, ids: Sequence[str], passed: bool) -> None:
        """A line in a block has no counters."""
