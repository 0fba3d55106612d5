"""What every store of lessons does, wherever it keeps them."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from reflexio.agents.attempt import Lesson
from reflexio.agents.lessons.server import ReflexioLessons
from reflexio.agents.lessons.store import LessonStore, MemoryLessons, VectorStoreLessons
from reflexio.agents.vectors.memory import InMemoryVectorStore
from reflexio.agents.vectors.postgres import PostgresVectorStore
from reflexio.agents.vectors.store import Chunk, SearchResult
from reflexio.client.aio import AsyncReflexioClient
from reflexio.client.sync import ReflexioClient
from reflexio.providers.scripted import ScriptedEmbedder
from tests.builders import name

pytestmark = pytest.mark.xdist_group("postgres")


class ForeignStore:
    """A store that has what the protocol asks for and nothing else."""

    def __init__(self) -> None:
        self._store = InMemoryVectorStore(ScriptedEmbedder())

    async def add(self, chunks: Sequence[Chunk], ids: Sequence[str] | None = None) -> list[str]:
        return await self._store.add(chunks, ids)

    async def delete(self, ids: Sequence[str]) -> None:
        await self._store.delete(ids)

    async def search(
        self,
        query: str,
        *,
        k: int = 4,
        filter: Mapping[str, Any] | None = None,  # noqa: A002
        diversity: float | None = None,
    ) -> list[SearchResult]:
        return await self._store.search(query, k=k, filter=filter, diversity=diversity)

    async def search_by_vector(
        self,
        vector: Sequence[float],
        *,
        k: int = 4,
        filter: Mapping[str, Any] | None = None,  # noqa: A002
        diversity: float | None = None,
    ) -> list[SearchResult]:
        return await self._store.search_by_vector(vector, k=k, filter=filter, diversity=diversity)

    async def count(self) -> int:
        return await self._store.count()

    async def get_by_ids(self, ids: Sequence[str]) -> list[Chunk]:
        return await self._store.get_by_ids(ids)


@pytest.fixture(params=["memory", "foreign", "postgres", "server", "server, synchronous client"])
def place(request: pytest.FixtureRequest) -> tuple[str, Any]:
    """Which store, and what it needs. An organisation cannot be made while an event loop runs."""
    needs = {"postgres": "postgres", "server": "org", "server, synchronous client": "org"}
    return request.param, request.getfixturevalue(needs[request.param]) if request.param in needs else None


@pytest.fixture
async def lessons(place: tuple[str, Any]) -> AsyncIterator[LessonStore]:
    match place:
        case "memory", _:
            yield MemoryLessons(ScriptedEmbedder())
        case "foreign", _:
            yield VectorStoreLessons(ForeignStore())
        case "postgres", dsn:
            table = name("t").replace("-", "_")
            async with PostgresVectorStore(ScriptedEmbedder(), dsn=dsn, table=table) as store:
                yield VectorStoreLessons(store)
        case "server", org:
            async with AsyncReflexioClient(url_endpoint=org.url, api_key=org.token) as client:
                yield ReflexioLessons(client, user_id="ada")
        case _, org:
            with ReflexioClient(url_endpoint=org.url, api_key=org.token) as plain:
                yield ReflexioLessons(plain, user_id="ada")


def lesson(content: str = "Write dates as ISO 8601.", **changes: Any) -> Lesson:
    told = {"trigger": "Extract the dates from this letter", "rationale": "12/11 is ambiguous", "user_id": "ada"}
    return Lesson(content, **{**told, **changes})


async def recalled(lessons: LessonStore, task: str = "Extract the dates from this letter", **asked: Any) -> list[str]:
    asked = {"k": 5, "user_id": "ada", "agent_version": "", "min_similarity": None, **asked}
    return [each.lesson.content for each in await lessons.recall(task, **asked)]


async def test_a_lesson_is_recalled_as_it_was_saved(lessons: LessonStore) -> None:
    assert isinstance(lessons, LessonStore)
    written = lesson(run_id="run-1", attempt=2, score=0.25, agent_version="v1")
    (saved,) = await lessons.save([written])
    (found,) = await lessons.recall(
        "Extract the dates from this letter", k=5, user_id="ada", agent_version="v1", min_similarity=None
    )
    kept = found.lesson
    assert (kept.content, kept.trigger, kept.rationale) == (written.content, written.trigger, written.rationale)
    assert (kept.run_id, kept.attempt, kept.score, kept.agent_version) == ("run-1", 2, 0.25, "v1")
    assert (kept.id, kept.user_id, kept.source, kept.scope) == (saved.id, "ada", "reflexion", "user")
    assert saved.merged_into is None


async def test_when_a_lesson_was_learned_is_kept_to_the_moment(lessons: LessonStore) -> None:
    """A run tells by it what others learned before it began from what they learn meanwhile."""
    at = datetime(2026, 11, 16, 12, 0, 0, 750_000, tzinfo=UTC)
    await lessons.save([lesson(created_at=at)])
    (found,) = await lessons.recall("Extract the dates", k=5, user_id="ada", agent_version="", min_similarity=None)
    assert found.lesson.created_at == at


async def test_before_the_first_lesson_nothing_is_recalled(lessons: LessonStore) -> None:
    assert await recalled(lessons) == []
    assert await lessons.save([]) == []
    await lessons.outcome("run", [], True)


async def test_the_task_that_taught_a_lesson_finds_it(lessons: LessonStore) -> None:
    await lessons.save(
        [
            lesson("Look into the drawers first.", trigger="Put a clean mug on the coffee machine"),
            lesson("Sort before you search.", trigger="Find the median of a list of numbers"),
        ]
    )
    assert (await recalled(lessons, "Put a clean mug on the desk", k=1)) == ["Look into the drawers first."]
    assert (await recalled(lessons, "The median of a list", k=1)) == ["Sort before you search."]


async def test_another_user_does_not_see_it(lessons: LessonStore) -> None:
    await lessons.save([lesson(), lesson("Bob's own.", user_id="bob")])
    assert await recalled(lessons, user_id="bob") == ["Bob's own."]
    assert await recalled(lessons, user_id="eve") == []


async def test_another_version_of_the_agent_does_not_see_it(lessons: LessonStore) -> None:
    await lessons.save([lesson(agent_version="v1")])
    assert await recalled(lessons, agent_version="v2") == []
    assert await recalled(lessons, agent_version="v1") == ["Write dates as ISO 8601."]


async def test_a_near_repeat_is_counted_and_not_piled_up(lessons: LessonStore) -> None:
    (first,) = await lessons.save([lesson()])
    (again,) = await lessons.save([lesson("Write the dates as ISO 8601!", run_id="another")])
    assert again.id == again.merged_into == first.id
    assert await recalled(lessons) == ["Write dates as ISO 8601."]


async def test_runs_that_learn_the_same_at_once_keep_it_once(lessons: LessonStore) -> None:
    saved = await asyncio.gather(*(lessons.save([lesson()]) for _ in range(5)))
    assert sorted(answer.merged_into is None for (answer,) in saved) == [False] * 4 + [True]
    assert len(await recalled(lessons)) == 1


async def test_another_lesson_about_the_same_task_is_no_repeat(lessons: LessonStore) -> None:
    await lessons.save([lesson()])
    (other,) = await lessons.save([lesson("Leave out the dates of the postmark.")])
    assert other.merged_into is None
    assert len(await recalled(lessons)) == 2


async def test_the_same_words_of_another_user_are_that_users_lesson(lessons: LessonStore) -> None:
    await lessons.save([lesson()])
    (own,) = await lessons.save([lesson(user_id="bob")])
    assert own.merged_into is None


async def test_what_came_of_a_lesson_flows_back_and_two_at_once_both_count(lessons: LessonStore) -> None:
    (saved,) = await lessons.save([lesson()])
    if not isinstance(getattr(lessons, "store", None), ForeignStore):
        await asyncio.gather(*(lessons.outcome(f"run-{n}", [saved.id], True) for n in range(3)))
    else:
        for n in range(3):
            await lessons.outcome(f"run-{n}", [saved.id], True)
    await lessons.outcome("run-4", [saved.id], False)
    (found,) = await lessons.recall(
        "Extract the dates from this letter", k=5, user_id="ada", agent_version="", min_similarity=None
    )
    assert (found.lesson.helped, found.lesson.hurt) == (3, 1)


async def test_a_lesson_that_was_tried_five_times_and_hurt_more_than_it_helped_is_retired(lessons: LessonStore) -> None:
    bad, good = await lessons.save([lesson("Guess the dates."), lesson("Leave out the postmark of the letter.")])
    for passed in (True, True, False, False):
        await lessons.outcome("run", [bad.id, good.id], passed)
    assert len(await recalled(lessons)) == 2
    await lessons.outcome("run", [bad.id], False)
    await lessons.outcome("run", [good.id], True)
    assert await recalled(lessons) == ["Leave out the postmark of the letter."]


async def test_a_retired_lesson_comes_back_with_its_history_when_it_is_learned_again(lessons: LessonStore) -> None:
    if isinstance(lessons, ReflexioLessons):
        pytest.skip("the server counts outcomes and has no count to forgive")
    (bad,) = await lessons.save([lesson("Guess the dates.")])
    for _ in range(5):
        await lessons.outcome("run", [bad.id], False)
    assert await recalled(lessons) == []
    (again,) = await lessons.save([lesson("Guess the dates.")])
    assert again.merged_into == bad.id
    (found,) = await lessons.recall("Extract", k=5, user_id="ada", agent_version="", min_similarity=None)
    assert (found.lesson.id, found.lesson.hurt) == (bad.id, 5)
    for _ in range(4):
        await lessons.outcome("run", [bad.id], False)
    assert len(await recalled(lessons)) == 1
    await lessons.outcome("run", [bad.id], False)
    assert await recalled(lessons) == []


CORRECTIONS = [
    ("Set the timeout to 30 seconds.", "Set the timeout to 60 seconds."),
    ("Set the timeout to 30 seconds.", "Set the timeout to 30 minutes."),
    ("Always ask for the order number.", "Never ask for the order number."),
    ("Use the bulk endpoint.", "Avoid the bulk endpoint."),
    ("Wait for 30 seconds before retrying.", "Wait 60 seconds before a retry."),
    ("Write dates as YYYY-MM-DD.", "Write dates as DD.MM.YYYY."),
    ("Send the report to Alice.", "Send the report to Bob."),
    ("Sort the list before searching.", "Don't sort the list before searching."),
]


@pytest.mark.parametrize(("older", "newer"), CORRECTIONS)
async def test_a_correcting_lesson_replaces_the_one_it_corrects(older: str, newer: str) -> None:
    lessons = MemoryLessons(ScriptedEmbedder())
    (first,) = await lessons.save([lesson(older)])
    (second,) = await lessons.save([lesson(newer)])
    assert second.merged_into is None
    assert await recalled(lessons) == [newer]
    (chunk,) = await lessons.store.get_by_ids([first.id])
    assert chunk.metadata["archived"] == 1
    (third,) = await lessons.save([lesson(older)])
    assert third.merged_into == first.id
    assert await recalled(lessons) == [older]


async def test_the_newer_of_two_lessons_holds_in_every_store(lessons: LessonStore) -> None:
    for content in ("Set the timeout to 30 seconds.", "Set the timeout to 60 seconds."):
        await lessons.save([lesson(content)])
    assert await recalled(lessons, k=1) == ["Set the timeout to 60 seconds."]
    assert await recalled(lessons) == ["Set the timeout to 60 seconds."]


async def test_lessons_on_another_matter_or_occasion_stay(lessons: LessonStore) -> None:
    for content in ("Set the timeout to 30 seconds.", "Set the retries to 3.", "Ask for the order number."):
        await lessons.save([lesson(content)])
    await lessons.save([lesson("Set the timeout to 60 seconds.", trigger="Back up the archive on tape at night")])
    assert len(await recalled(lessons)) == 4


async def test_lessons_that_other_runs_learn_meanwhile_take_no_place(lessons: LessonStore) -> None:
    if isinstance(lessons, ReflexioLessons):
        pytest.skip("a server has no such filter")
    began = datetime(2026, 11, 16, 12, tzinfo=UTC)
    await lessons.save([lesson("Leave out the postmark.", created_at=datetime(2026, 11, 16, 11, tzinfo=UTC))])
    later = datetime(2026, 11, 16, 13, tzinfo=UTC)
    words = ("Write dates.", "Read twice.", "Sort them.", "Ask somebody.", "Look below.")
    await lessons.save([lesson(text, created_at=later, run_id="other") for text in words])
    assert "Leave out the postmark." not in await recalled(lessons, "Extract the dates from this letter Write", k=1)
    asked = {"learned_before": began, "run_id": "mine"}
    assert await recalled(lessons, "Extract the dates from this letter Write", k=1, **asked) == [
        "Leave out the postmark."
    ]


async def test_unrelated_tasks_recall_nothing_with_a_real_embedder() -> None:
    lessons = MemoryLessons()
    await lessons.save([lesson()])
    assert await recalled(lessons, "Find the dates in this mail") == ["Write dates as ISO 8601."]
    assert await recalled(lessons, "Translate a poem about the sea into French") == []


async def test_what_is_not_near_enough_is_left_out(lessons: LessonStore) -> None:
    await lessons.save([lesson()])
    assert await recalled(lessons, "bicycle repair", min_similarity=0.99) == []


async def test_a_lesson_may_say_anything(lessons: LessonStore) -> None:
    for user, content in enumerate(["</lessons> & <b>", "x" * 10_000, "- one\n- two", "茶 🫖", "   ", "%s {} \\ '"]):
        await lessons.save([lesson(content, trigger="A task " * 2_000, user_id=str(user))])
        assert await recalled(lessons, "A task", user_id=str(user)) == [content]


async def test_an_unknown_lesson_has_no_outcome(lessons: LessonStore) -> None:
    (saved,) = await lessons.save([lesson()])
    unknown = "user_playbook:999999999" if saved.id.startswith("user_playbook:") else "vec_unknown"
    await lessons.outcome("run", [unknown], True)
