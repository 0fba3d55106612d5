"""Lessons in a block of working memory: every one is kept, and every later run of the user is shown them all."""

from collections.abc import Sequence

from reflexio.agents.bullets import bullet
from reflexio.agents.memory import Memory
from reflexio.agents.stores import Recalled, Saved
from reflexio.agents.values import Lesson


class BlockLessons:
    """Made for one run: what stood in the block when the run began stays what it is shown.

    So runs side by side write into one block and never read each other's lessons.
    """

    def __init__(self, memory: Memory, block: str) -> None:
        self.place = block
        self._memory = memory
        self._found: list[Recalled] | None = None

    async def recall(
        self, task: str, *, k: int, user_id: str | None, agent_version: str, min_similarity: float | None
    ) -> list[Recalled]:
        if self._found is None:
            blocks = await self._memory.working(user_id=user_id)
            lines = [line for block in blocks if block.name == self.place for line in block.content.splitlines()]
            newest_first = [line.removeprefix("- ").strip() for line in reversed(lines)]
            self._found = [Recalled(Lesson(line, user_id=user_id)) for line in newest_first if line]
        return self._found[:k]

    async def save(self, lessons: Sequence[Lesson]) -> list[Saved]:
        for lesson in lessons:
            await self._memory.append_block(self.place, bullet(lesson.content), user_id=lesson.user_id)
        return [Saved("") for _ in lessons]

    async def outcome(self, run_id: str, ids: Sequence[str], passed: bool) -> None:
        """A line in a block has no counters."""
