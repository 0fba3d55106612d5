"""Where lessons live between runs, and the vectors that may lie under them. Implementations are elsewhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from reflexio.agents.values import Lesson, value


@value
class Recalled:
    """A lesson that a store found for a task, and how near it is: cosine, from -1 to 1."""

    lesson: Lesson
    similarity: float = 0.0


@value
class Saved:
    """Where a lesson went: its id, or that of the near-repeat it was merged into."""

    id: str
    merged_into: str | None = None


@runtime_checkable
class LessonStore(Protocol):
    """Lessons that outlive a run. Any error it raises is reported, and never costs a finished answer."""

    async def recall(
        self, task: str, *, k: int, user_id: str | None, agent_version: str, min_similarity: float | None
    ) -> list[Recalled]:
        """At most `k` lessons of this user (or of everybody), the most relevant first."""

    async def save(self, lessons: Sequence[Lesson]) -> list[Saved]:
        """Keeps lessons; one answer for each, in order."""

    async def outcome(self, run_id: str, ids: Sequence[str], passed: bool) -> None:
        """Whether the attempt that was shown these lessons passed."""


def lesson_store(given: "LessonStore | VectorStore") -> LessonStore:
    """The store that is given, or one that keeps lessons in the vector store that is given."""
    if isinstance(given, LessonStore):
        return given
    if isinstance(given, VectorStore):
        from reflexio.agents.lessons.vectors import VectorStoreLessons

        return VectorStoreLessons(given)
    raise TypeError(f"{given!r} is neither a LessonStore nor a VectorStore.")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A text to embed, and what is known about it."""

    content: str
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SearchResult:
    chunk: Chunk
    score: float
    id: str


@runtime_checkable
class VectorStore(Protocol):
    """Texts found by meaning.

    `filter` is a subset of Mongo's: `$eq $ne $gt $gte $lt $lte $in $nin $exists $and $or $not`; a plain value means
    `$eq`, a list `$in`. `diversity` from 0 to 1 trades relevance for variety.
    """

    async def add(self, chunks: Sequence[Chunk], ids: Sequence[str] | None = None) -> list[str]: ...

    async def delete(self, ids: Sequence[str]) -> None: ...

    async def search(
        self,
        query: str,
        *,
        k: int = 4,
        filter: Mapping[str, Any] | None = None,  # noqa: A002
        diversity: float | None = None,
    ) -> list[SearchResult]: ...

    async def search_by_vector(
        self,
        vector: Sequence[float],
        *,
        k: int = 4,
        filter: Mapping[str, Any] | None = None,  # noqa: A002
        diversity: float | None = None,
    ) -> list[SearchResult]: ...

    async def count(self) -> int: ...

    async def get_by_ids(self, ids: Sequence[str]) -> list[Chunk]:
        """Those that are there, in the order asked for."""
