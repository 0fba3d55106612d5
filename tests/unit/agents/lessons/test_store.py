from datetime import UTC, datetime

import pytest

from reflexio.agents import Agent, InMemoryVectorStore, Lesson, MemoryLessons, Reflexion, ScriptedModel
from reflexio.agents.lessons.store import VectorStoreLessons
from reflexio.agents.vectors.store import Chunk
from reflexio.errors import InvalidRequest
from reflexio.providers.scripted import ScriptedEmbedder


async def test_the_metadata_that_others_expect_is_kept() -> None:
    lessons = MemoryLessons(ScriptedEmbedder())
    at = datetime(2026, 11, 16, 12, tzinfo=UTC)
    await lessons.save([Lesson("Sort first.", trigger="Find " * 100, attempt=2, score=0.5, created_at=at)])
    (hit,) = await lessons.store.search("Find")
    told = hit.chunk.metadata
    assert (told["attempt"], told["score"], told["prompt_excerpt"]) == (2, 0.5, ("Find " * 100)[:200])
    (found,) = await lessons.recall("Find")
    assert found.lesson.created_at == at
    assert found.lesson.trigger == ("Find " * 100).rstrip("\n")


async def test_chunks_that_others_wrote_are_lessons_of_nobody_in_particular() -> None:
    store = InMemoryVectorStore(ScriptedEmbedder())
    await store.add([Chunk("Sort first.", {"attempt": 1, "score": 0.2, "prompt_excerpt": "Find the median"})])
    lessons = VectorStoreLessons(store)
    (found,) = await lessons.recall("Find the median")
    assert (found.lesson.content, found.lesson.trigger, found.lesson.score) == ("Sort first.", "Find the median", 0.2)
    assert await lessons.recall("Find the median", user_id="ada") == []


async def test_a_shared_lesson_is_everybodys() -> None:
    lessons = MemoryLessons(ScriptedEmbedder())
    await lessons.save([Lesson("Sort first.", trigger="Find", user_id="ada", scope="shared")])
    (found,) = await lessons.recall("Find", user_id="bob")
    assert (found.lesson.scope, found.lesson.user_id) == ("shared", None)


async def test_no_user_can_pass_for_everybody() -> None:
    lessons = MemoryLessons(ScriptedEmbedder())
    await lessons.save([Lesson("Sort first.", trigger="Find", scope="shared")])
    with pytest.raises(InvalidRequest, match="everybody"):
        await lessons.save([Lesson("Obey me.", trigger="Find", user_id="*")])
    with pytest.raises(InvalidRequest, match="everybody"):
        await lessons.forget("*")
    assert [each.lesson.content for each in await lessons.recall("Find", user_id="ada")] == ["Sort first."]


async def test_a_user_can_be_forgotten() -> None:
    lessons = MemoryLessons(ScriptedEmbedder())
    for owner in ("ada", "bob", None):
        await lessons.save([Lesson(f"{n} of {owner}", trigger=str(n), user_id=owner) for n in range(3)])
    await lessons.forget("ada")
    assert await lessons.recall("0", user_id="ada") == []
    assert await lessons.store.count() == 6
    await lessons.forget(None)
    assert await lessons.store.count() == 3


async def test_the_seeds_architecture_keeps_its_lessons_in_a_vector_store_each_users_own() -> None:
    store = InMemoryVectorStore(ScriptedEmbedder())
    model = ScriptedModel(["A", "score: 0", "Write ISO dates.", "B", "score: 1", "C", "score: 1", "D", "score: 1"])
    agent = Agent(model=model, architecture=Reflexion(lesson_store=store))
    for user in ("ada", "ada", "bob"):
        await agent.run("When is the fair?", user_id=user)
    shown = ["Write ISO dates." in str(messages) for messages in model.asked]
    assert shown == [False, False, False, True, False, True, False, False, False]
    assert await store.count() == 1
