"""The `LessonStore` protocol, and lessons in a vector store.

Decides which lessons repeat each other and which ones are retired, for every store.
"""

import asyncio
import re
from collections.abc import Hashable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable
from weakref import WeakKeyDictionary, WeakValueDictionary

from reflexio.agents.attempt import Lesson, value
from reflexio.agents.lessons.correction import conflict, correction
from reflexio.agents.vectors.store import Chunk, SearchResult, VectorStore
from reflexio.errors import InvalidRequest

if TYPE_CHECKING:
    from reflexio.agents.vectors.embedding import EmbedderChoice

SAME_WORDS, SAME_OCCASION = 0.7, 0.92
"""A lesson repeats another from this share of common words and this cosine of trigger and lesson together."""
LEAST_TRIED = 5
EVERYBODY = "*"
EXCERPT_CHARS, NEIGHBOURS, DELETE_BATCH = 200, 20, 1_000
_WORD = re.compile(r"\w+")
_SAVE_LOCKS: "WeakKeyDictionary[asyncio.AbstractEventLoop, WeakValueDictionary[Hashable, asyncio.Lock]]"
_SAVE_LOCKS = WeakKeyDictionary()
_FLOORS: WeakKeyDictionary[Any, float] = WeakKeyDictionary()


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
        """At most `k` lessons of this user or of everybody, the most relevant first.

        A store whose `recall` also has parameters `learned_before` and `run_id` is told when the run began and leaves
        out what other runs learned since; from other stores those lessons are dropped afterwards.
        """

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
        learned_before: datetime | None = None,
        run_id: str = "",
    ) -> list[Recalled]:
        """At most `k` lessons of this user or of everybody, the most relevant first.

        Without `min_similarity`, the noise floor of the embedder decides what has nothing to do with the task. With
        `learned_before`, lessons that other runs than `run_id` learned later take no place.
        """
        active = {
            **_owned_by([user_id, EVERYBODY], agent_version),
            "retired": [0, None],
            "archived": [0, None],
            **_learned_before(learned_before, run_id),
        }
        hits = await self.store.search(task, k=k, filter=active)
        if not hits:
            return []
        least = await self._floor() if min_similarity is None else min_similarity
        return [Recalled(_to_lesson(hit), hit.score) for hit in hits if hit.score >= least]

    async def _floor(self) -> float:
        """The similarity below which a lesson has nothing to do with a task; -1 when the embedder is not known."""
        embedder = getattr(self.store, "embedder", None)
        return -1.0 if embedder is None else await noise_floor(embedder)

    async def save(self, lessons: Sequence[Lesson]) -> list[Saved]:
        """Saves lessons; one answer for each, in order."""
        saved = []
        for lesson in lessons:
            async with save_lock(id(self.store), _owner(lesson)):
                saved.append(await self._save(lesson))
        return saved

    async def _save(self, lesson: Lesson) -> Saved:
        """Archives what the lesson corrects, then counts it on a lesson that it repeats, or adds it.

        A lesson that is learned again after it was retired or archived comes back, with its history.
        """
        same_owner = _owned_by([_owner(lesson)], lesson.agent_version)
        hits = await self.store.search(search_text(lesson), k=NEIGHBOURS, filter=same_owner)
        repeated = ""
        for hit in hits:
            known = _to_lesson(hit)
            if not is_same_occasion(lesson, known, hit.score):
                continue
            if correction(lesson.content, known.content):
                if not hit.chunk.metadata.get("archived"):
                    await self._bump(hit.id, {"archived": 1})
            elif not repeated and repeats(lesson, known, hit.score):
                repeated = hit.id
                await self._bump(hit.id, {"repeated": 1, **_revival(hit)})
        if repeated:
            return Saved(repeated, merged_into=repeated)
        (new_id,) = await self.store.add([_to_chunk(lesson)])
        return Saved(new_id)

    async def outcome(self, run_id: str, ids: Sequence[str], passed: bool) -> None:
        """Counts whether the attempt that was shown these lessons passed."""
        for lesson_id in ids:
            await self._bump(lesson_id, {"helped" if passed else "hurt": 1})
        for lesson_id in ids:
            for chunk in await self.store.get_by_ids([lesson_id]):
                lesson = _to_lesson(SearchResult(chunk, 0.0, lesson_id))
                if not chunk.metadata.get("retired") and is_retired(lesson, chunk.metadata.get("forgiven", 0)):
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
    if not is_same_occasion(lesson, known, similarity) or conflict(lesson.content, known.content):
        return False
    words, known_words = (set(_WORD.findall(text.lower())) for text in (lesson.content, known.content))
    if not words or not known_words:
        return lesson.content.strip() == known.content.strip()
    return len(words & known_words) / len(words | known_words) >= SAME_WORDS


def is_same_occasion(lesson: Lesson, known: Lesson, similarity: float | None) -> bool:
    return lesson.trigger == known.trigger or (similarity or 0.0) >= SAME_OCCASION


def is_retired(lesson: Lesson, forgiven: int = 0) -> bool:
    """Tried often enough, and hurt more often than it helped. `forgiven` failures were before it was learned again."""
    hurt = lesson.hurt - forgiven
    return lesson.helped + hurt >= LEAST_TRIED and hurt > lesson.helped


def _revival(hit: SearchResult) -> dict[str, int]:
    """The counts that bring a lesson back: it is no longer retired or archived, and its failures are forgiven."""
    metadata = hit.chunk.metadata
    counts = {key: -metadata[key] for key in ("retired", "archived") if metadata.get(key)}
    if counts:
        counts["forgiven"] = metadata.get("hurt", 0) - metadata.get("forgiven", 0)
    return counts


def _learned_before(moment: datetime | None, run_id: str) -> dict[str, Any]:
    """A filter for lessons that this run may see: its own, and those of other runs that are older than the moment."""
    if moment is None:
        return {}
    undated = {"created_at": None}
    older = {"created_at": {"$lt": moment.astimezone(UTC).isoformat(timespec="microseconds")}}
    return {"$or": [undated, older, {"run_id": [run_id, "", None]}]}


async def noise_floor(embedder: Any) -> float:
    """A similarity that unrelated texts of this embedder hardly reach; -1 if it cannot be measured.

    Each embedder has its own range of cosines, so its own vectors of a few sentences decide.
    """
    from reflexio.agents.vectors.embedding import measured_noise

    if embedder not in _FLOORS:
        try:
            _FLOORS[embedder] = await measured_noise(embedder)
        except (LookupError, TypeError, ValueError):  # it knows only its own texts
            _FLOORS[embedder] = -1.0
    return _FLOORS[embedder]


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
        # One form for all, so that texts are ordered as the moments are.
        "created_at": lesson.created_at and lesson.created_at.astimezone(UTC).isoformat(timespec="microseconds"),
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
