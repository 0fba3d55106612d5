"""Lessons in a store of vectors, each user's own."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from reflexio.agents.embedding import AnyEmbedder
from reflexio.agents.lessons.turns import turn
from reflexio.agents.lessons.worth import is_retired, key, repeats
from reflexio.agents.stores import Chunk, Recalled, Saved, SearchResult, VectorStore
from reflexio.agents.values import Lesson
from reflexio.errors import InvalidRequest

EVERYBODY = "*"
EXCERPT, NEIGHBOURS, MANY = 200, 5, 1_000


@runtime_checkable
class Counting(Protocol):
    """A store of vectors that can add to numbers in metadata in one go. Both of ours can."""

    async def bump(self, id: str, counts: Mapping[str, int]) -> None: ...  # noqa: A002


class VectorStoreLessons:
    """Lessons as chunks of any vector store: found by the task that taught them and what they say.

    A lesson is seen by its user and, with the scope `shared`, by everybody. One that repeats another is counted
    on that one. One that was tried five times and hurt more often than it helped is kept and no longer recalled.

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
        wanted = {**_of([user_id, EVERYBODY], agent_version), "retired": {"$exists": False}}
        hits = await self.store.search(task, k=k, filter=wanted)
        return [
            Recalled(_lesson(hit), hit.score) for hit in hits if min_similarity is None or hit.score >= min_similarity
        ]

    async def save(self, lessons: Sequence[Lesson]) -> list[Saved]:
        """Keeps lessons; one answer for each, in order."""
        saved = []
        for each in lessons:
            async with turn(id(self.store), _owner(each)):
                saved.append(await self._save(each))
        return saved

    async def _save(self, lesson: Lesson) -> Saved:
        # Retired ones, too: what did harm is not learned anew.
        mine = _of([_owner(lesson)], lesson.agent_version)
        for hit in await self.store.search(key(lesson), k=NEIGHBOURS, filter=mine):
            if repeats(lesson, _lesson(hit), hit.score):
                await self._bump(hit.id, {"repeated": 1})
                return Saved(hit.id, merged_into=hit.id)
        (name,) = await self.store.add([_chunk(lesson)])
        return Saved(name)

    async def outcome(self, run_id: str, ids: Sequence[str], passed: bool) -> None:
        """Counts whether the attempt that was shown these lessons passed."""
        for each in ids:
            await self._bump(each, {"helped" if passed else "hurt": 1})
        for each in ids:
            for chunk in await self.store.get_by_ids([each]):
                told = chunk.metadata
                if "retired" not in told and is_retired(told.get("helped", 0), told.get("hurt", 0)):
                    await self._bump(each, {"retired": 1})

    async def forget(self, user_id: str | None) -> None:
        """Deletes every lesson of a user; those that are everybody's stay."""
        while hits := await self.store.search("lesson", k=MANY, filter={"user_id": [_one(user_id)]}):
            await self.store.delete([hit.id for hit in hits])

    async def _bump(self, name: str, counts: Mapping[str, int]) -> None:
        if isinstance(self.store, Counting):
            await self.store.bump(name, counts)
            return
        # All that the protocol has: of two who count at once, one may be lost.
        for chunk in await self.store.get_by_ids([name]):
            more = {each: chunk.metadata.get(each, 0) + number for each, number in counts.items()}
            await self.store.delete([name])
            await self.store.add([Chunk(chunk.content, {**chunk.metadata, **more})], ids=[name])


class MemoryLessons(VectorStoreLessons):
    """Lessons in this process. Without an embedder, the local one."""

    def __init__(self, embedder: AnyEmbedder | str | None = None) -> None:
        from reflexio.agents.vectors.memory import InMemoryVectorStore

        super().__init__(InMemoryVectorStore(embedder))


def _owner(lesson: Lesson) -> str | None:
    return EVERYBODY if lesson.scope == "shared" else _one(lesson.user_id)


def _one(user_id: str | None) -> str | None:
    if user_id == EVERYBODY:
        raise InvalidRequest(f"The user {EVERYBODY!r} is everybody; give this one another id.")
    return user_id


def _of(owners: list[str | None], agent_version: str) -> dict[str, Any]:
    """Whose lessons; those without a version are for every version."""
    versions = {"agent_version": [agent_version, "", None]} if agent_version else {}
    return {"user_id": owners, **versions}


def _chunk(lesson: Lesson) -> Chunk:
    """`attempt`, `score` and `prompt_excerpt` are what others who read such a store expect."""
    told = {
        "attempt": lesson.attempt,
        "score": lesson.score,
        "prompt_excerpt": lesson.trigger[:EXCERPT],
        "lesson": lesson.content,
        "rationale": lesson.rationale,
        "user_id": _owner(lesson),
        "agent_version": lesson.agent_version,
        "run_id": lesson.run_id,
        "created_at": lesson.created_at.isoformat() if lesson.created_at else None,
        "source": lesson.source,
    }
    return Chunk(key(lesson), told)


def _lesson(hit: SearchResult) -> Lesson:
    """Also of chunks that others wrote: then the whole text is the lesson."""
    told = hit.chunk.metadata
    content = told.get("lesson", hit.chunk.content)
    before = (
        hit.chunk.content.removesuffix(content).rstrip("\n") if "lesson" in told else told.get("prompt_excerpt", "")
    )
    owner, at = told.get("user_id"), told.get("created_at")
    return Lesson(
        content,
        trigger=before,
        rationale=told.get("rationale", ""),
        id=hit.id,
        user_id=None if owner == EVERYBODY else owner,
        scope="shared" if owner == EVERYBODY else "user",
        agent_version=told.get("agent_version") or "",
        run_id=told.get("run_id") or "",
        attempt=told.get("attempt", 0),
        score=told.get("score", 0.0),
        created_at=datetime.fromisoformat(at) if at else None,
        helped=told.get("helped", 0),
        hurt=told.get("hurt", 0),
        source=told.get("source", "reflexion"),
    )
