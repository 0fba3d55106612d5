"""The `LessonStore` protocol, and lessons in a vector store.

Decides which lessons repeat each other and which ones are retired, for every store.
"""

import asyncio
import re
from collections.abc import Hashable, Mapping, Sequence
from datetime import datetime
from math import inf
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable
from weakref import WeakKeyDictionary, WeakValueDictionary

from reflexio.agents.attempt import Lesson, value
from reflexio.agents.vectors.store import Chunk, SearchResult, VectorStore
from reflexio.errors import InvalidRequest

if TYPE_CHECKING:
    from reflexio.agents.vectors.embedding import EmbedderChoice

SAME_WORDS, SAME_OCCASION = 0.7, 0.92
"""A lesson repeats another from this share of common words and this cosine of trigger and lesson together."""
LEAST_TRIED = 5
EVERYBODY = "*"
EXCERPT_CHARS, NEIGHBOURS, DELETE_BATCH = 200, 5, 1_000
_WORD = re.compile(r"\w+")
_SAVE_LOCKS: "WeakKeyDictionary[asyncio.AbstractEventLoop, WeakValueDictionary[Hashable, asyncio.Lock]]"
_SAVE_LOCKS = WeakKeyDictionary()


@value
class Recalled:
    """A lesson that a store recalls for a task, and its cosine similarity, from -1 to 1."""

    lesson: Lesson
    similarity: float = 0.0


@value
class Saved:
    """Where a lesson was saved: its id, or the id of the stored lesson that it was merged into."""

    id: str
    merged_into: str | None = None


@runtime_checkable
class LessonStore(Protocol):
    """Lessons that outlive a run. Errors that a store raises are reported; they never cost a finished answer."""

    async def recall(
        self, task: str, *, k: int, user_id: str | None, agent_version: str, min_similarity: float | None
    ) -> list[Recalled]:
        """At most `k` lessons of this user or of everybody, the most relevant first."""

    async def save(self, lessons: Sequence[Lesson]) -> list[Saved]:
        """Saves lessons; one answer for each, in order."""

    async def outcome(self, run_id: str, ids: Sequence[str], passed: bool) -> None:
        """Records whether the attempt that was shown these lessons passed."""


@runtime_checkable
class CountingStore(Protocol):
    """A vector store that can add to numbers in metadata atomically. Both of ours can."""

    async def bump(self, id: str, counts: Mapping[str, int]) -> None: ...  # noqa: A002


def as_lesson_store(store: LessonStore | VectorStore) -> LessonStore:
    """The lesson store itself, or one that keeps lessons in the vector store."""
    if isinstance(store, type):
        raise TypeError(f"{store.__name__} is a class: give a store, such as {store.__name__}(…).")
    if isinstance(store, LessonStore):
        return store
    if isinstance(store, VectorStore):
        return VectorStoreLessons(store)
    raise TypeError(f"{store!r} is neither a LessonStore nor a VectorStore: give one, such as MemoryLessons().")


class VectorStoreLessons:
    """Lessons as chunks of any vector store, embedded with the task that taught them.

    A lesson is visible to its user and, with the scope `shared`, to everybody. A lesson that repeats a stored one is
    counted there. A lesson that was tried five times and hurt more often than it helped is no longer recalled.

    >>> lessons = VectorStoreLessons(PostgresVectorStore(dsn="postgresql://localhost/agents"))  # doctest: +SKIP
    """

    def __init__(self, store: VectorStore) -> None:
        self.store = store

    async def recall(
        self,
        task: str,
        *,
        k: int = 5,
        user_id: str | None = None,
        agent_version: str = "",
        min_similarity: float | None = None,
    ) -> list[Recalled]:
        """At most `k` lessons of this user or of everybody, the most relevant first."""
        active = {**_owned_by([user_id, EVERYBODY], agent_version), "retired": {"$exists": False}}
        hits = await self.store.search(task, k=k, filter=active)
        least = -inf if min_similarity is None else min_similarity
        return [Recalled(_to_lesson(hit), hit.score) for hit in hits if hit.score >= least]

    async def save(self, lessons: Sequence[Lesson]) -> list[Saved]:
        """Saves lessons; one answer for each, in order."""
        saved = []
        for lesson in lessons:
            async with save_lock(id(self.store), _owner(lesson)):
                saved.append(await self._save(lesson))
        return saved

    async def _save(self, lesson: Lesson) -> Saved:
        # Retired lessons count as well: a lesson that did harm is not learned a second time.
        same_owner = _owned_by([_owner(lesson)], lesson.agent_version)
        for hit in await self.store.search(search_text(lesson), k=NEIGHBOURS, filter=same_owner):
            if repeats(lesson, _to_lesson(hit), hit.score):
                await self._bump(hit.id, {"repeated": 1})
                return Saved(hit.id, merged_into=hit.id)
        (new_id,) = await self.store.add([_to_chunk(lesson)])
        return Saved(new_id)

    async def outcome(self, run_id: str, ids: Sequence[str], passed: bool) -> None:
        """Counts whether the attempt that was shown these lessons passed."""
        for lesson_id in ids:
            await self._bump(lesson_id, {"helped" if passed else "hurt": 1})
        for lesson_id in ids:
            for chunk in await self.store.get_by_ids([lesson_id]):
                lesson = _to_lesson(SearchResult(chunk, 0.0, lesson_id))
                if "retired" not in chunk.metadata and is_retired(lesson):
                    await self._bump(lesson_id, {"retired": 1})

    async def forget(self, user_id: str | None) -> None:
        """Deletes every lesson of a user; lessons of everybody stay."""
        while hits := await self.store.search("lesson", k=DELETE_BATCH, filter={"user_id": [_checked_user(user_id)]}):
            await self.store.delete([hit.id for hit in hits])

    async def _bump(self, lesson_id: str, counts: Mapping[str, int]) -> None:
        if isinstance(self.store, CountingStore):
            await self.store.bump(lesson_id, counts)
            return
        # The VectorStore protocol has no atomic update: of two concurrent counts, one may be lost.
        for chunk in await self.store.get_by_ids([lesson_id]):
            sums = {key: chunk.metadata.get(key, 0) + number for key, number in counts.items()}
            await self.store.delete([lesson_id])
            await self.store.add([Chunk(chunk.content, {**chunk.metadata, **sums})], ids=[lesson_id])


class MemoryLessons(VectorStoreLessons):
    """Lessons in this process. Without an embedder, the local one is used."""

    def __init__(self, embedder: "EmbedderChoice" = None) -> None:
        from reflexio.agents.vectors.memory import InMemoryVectorStore

        super().__init__(InMemoryVectorStore(embedder))


def search_text(lesson: Lesson) -> str:
    """The text that a lesson is found by. The task that taught it says more about similar tasks than the advice."""
    return f"{lesson.trigger}\n{lesson.content}" if lesson.trigger else lesson.content


def repeats(lesson: Lesson, known: Lesson, similarity: float | None) -> bool:
    """Whether the lesson says the same as a known one on the same occasion.

    The cosine alone would merge all lessons of one task, since the task is most of the compared text; the words
    alone would merge lessons of different tasks with the same wording.
    """
    if lesson.trigger != known.trigger and (similarity or 0.0) < SAME_OCCASION:
        return False
    words, known_words = (set(_WORD.findall(text.lower())) for text in (lesson.content, known.content))
    if not words or not known_words:
        return lesson.content.strip() == known.content.strip()
    return len(words & known_words) / len(words | known_words) >= SAME_WORDS


def is_retired(lesson: Lesson) -> bool:
    """Tried often enough, and hurt more often than it helped."""
    return lesson.helped + lesson.hurt >= LEAST_TRIED and lesson.hurt > lesson.helped


def save_lock(*owner: Hashable) -> asyncio.Lock:
    """The lock of a store and a user: two concurrent saves of one lesson would both find that it is new.

    It works among the runs of one event loop; two processes may still save a lesson twice. Stores are often created
    for each run, so a store cannot hold the lock itself.
    """
    return _SAVE_LOCKS.setdefault(asyncio.get_running_loop(), WeakValueDictionary()).setdefault(owner, asyncio.Lock())


def _owner(lesson: Lesson) -> str | None:
    return EVERYBODY if lesson.scope == "shared" else _checked_user(lesson.user_id)


def _checked_user(user_id: str | None) -> str | None:
    if user_id == EVERYBODY:
        raise InvalidRequest(f"The user id {EVERYBODY!r} stands for everybody; use another id for this user.")
    return user_id


def _owned_by(owners: list[str | None], agent_version: str) -> dict[str, Any]:
    """A filter for the lessons of these owners; lessons without a version are for every version."""
    return {"user_id": owners, **({"agent_version": [agent_version, "", None]} if agent_version else {})}


def _to_chunk(lesson: Lesson) -> Chunk:
    """`attempt`, `score` and `prompt_excerpt` are what other programs that read such a store expect."""
    metadata = {name: getattr(lesson, name) for name in ("attempt", "score", "rationale", "run_id", "source")}
    metadata |= {
        "prompt_excerpt": lesson.trigger[:EXCERPT_CHARS],
        "lesson": lesson.content,
        "user_id": _owner(lesson),
        "agent_version": lesson.agent_version,
        "created_at": lesson.created_at.isoformat() if lesson.created_at else None,
    }
    return Chunk(search_text(lesson), metadata)


def _to_lesson(hit: SearchResult) -> Lesson:
    """The lesson of a hit. In chunks of other programs the whole text is the lesson."""
    text, metadata = hit.chunk.content, hit.chunk.metadata
    content = metadata.get("lesson", text)
    trigger = text.removesuffix(content).rstrip("\n") if "lesson" in metadata else metadata.get("prompt_excerpt", "")
    owner, created_at = metadata.get("user_id"), metadata.get("created_at")
    return Lesson(
        content,
        trigger=trigger,
        id=hit.id,
        user_id=None if owner == EVERYBODY else owner,
        scope="shared" if owner == EVERYBODY else "user",
        agent_version=metadata.get("agent_version") or "",
        run_id=metadata.get("run_id") or "",
        created_at=datetime.fromisoformat(created_at) if created_at else None,
        **{
            name: metadata[name]
            for name in ("rationale", "attempt", "score", "helped", "hurt", "source")
            if name in metadata
        },
    )
