"""Small twins for tests of agents: a lesson store that remembers what it was told, and agents that answer in turn."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from reflexio.agents.attempt import Attempt, Lesson
from reflexio.agents.lessons.store import Recalled, Saved


class Notes:
    """A lesson store in a list. What a user saved, or everybody shares, is recalled: the newest first."""

    def __init__(self, *lessons: Lesson) -> None:
        self.saved: list[Lesson] = list(lessons)
        self.outcomes: list[tuple[tuple[str, ...], bool]] = []
        self.asked: list[tuple[str, int, str | None]] = []

    async def recall(
        self, task: str, *, k: int, user_id: str | None, agent_version: str, min_similarity: float | None
    ) -> list[Recalled]:
        self.asked.append((task, k, user_id))
        mine = [each for each in reversed(self.saved) if each.scope == "shared" or each.user_id == user_id]
        return [Recalled(each, 0.9) for each in mine][:k]

    async def save(self, lessons: Sequence[Lesson]) -> list[Saved]:
        ids = []
        for lesson in lessons:
            ids.append(f"note-{len(self.saved) + 1}")
            self.saved.append(replace(lesson, id=ids[-1]))
        return [Saved(each) for each in ids]

    async def outcome(self, run_id: str, ids: Sequence[str], passed: bool) -> None:
        self.outcomes.append((tuple(ids), passed))


class Broken:
    """A store of which every call fails."""

    async def recall(self, task: str, **_: Any) -> list[Recalled]:
        raise ConnectionError("no store")

    async def save(self, lessons: Sequence[Lesson]) -> list[Saved]:
        raise ConnectionError("no store")

    async def outcome(self, run_id: str, ids: Sequence[str], passed: bool) -> None:
        raise ConnectionError("no store")


def answering(*outputs: Any) -> Callable[[Any, Attempt], Any]:
    """An agent that gives one output after the other, attempt by attempt."""

    async def agent(task: Any, attempt: Attempt) -> Any:
        return outputs[attempt.number - 1]

    return agent


async def itself(output: float) -> tuple[float, str]:
    """An evaluator for outputs that are scores."""
    return output, f"only {output}"
