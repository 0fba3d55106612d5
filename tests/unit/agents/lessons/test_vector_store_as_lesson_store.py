"""Any vector store is a lesson store of the Reflexion architecture."""

from typing import Any

import pytest

from reflexio.agents import Agent, InMemoryVectorStore, Reflexion, ScriptedModel, reflexion
from reflexio.providers.scripted import ScriptedEmbedder

LEARNS = ["A", "score: 0.1", "Write dates as YYYY-MM-DD.", "B", "score: 0.9"]


async def test_a_lesson_is_stored_under_prompt_and_lesson_and_found_by_its_user_only() -> None:
    store = InMemoryVectorStore(ScriptedEmbedder())
    model = ScriptedModel([*LEARNS, "C", "score: 1", "D", "score: 1"])
    agent = Agent(model=model, architecture=Reflexion(lesson_store=store))
    await agent.run("When is the fair?", user_id="ada")
    await agent.run("When is the market?", user_id="ada")
    await agent.run("When is the market?", user_id="bob")
    (hit,) = await store.search("When is the fair?")
    assert "When is the fair?" in hit.chunk.content
    assert "YYYY-MM-DD" in hit.chunk.content
    assert (hit.chunk.metadata["attempt"], hit.chunk.metadata["score"]) == (1, 0.1)
    assert hit.chunk.metadata["prompt_excerpt"] == "When is the fair?"
    assert [any("YYYY-MM-DD" in message.content for message in asked) for asked in model.asked[3::2]] == [
        True,
        True,
        False,
    ]


async def test_what_is_no_store_is_refused_at_once() -> None:
    nonsense: Any = {}
    with pytest.raises(TypeError, match="neither a LessonStore nor a VectorStore"):
        Reflexion(lesson_store=nonsense)
    with pytest.raises(TypeError, match="neither a LessonStore nor a VectorStore"):
        await reflexion(lambda task: task, "task", evaluate=bool, lessons=nonsense)
