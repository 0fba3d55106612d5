"""Models by name, over HTTP: conversations with tools, streams, structured questions, failures, closing."""

import asyncio
from typing import Any

import pytest

from reflexio.agents import Agent, Judge, Reflector, Reflexion, ScriptedModel, reflexion, reflexion_sync
from reflexio.agents.budget import price
from reflexio.agents.model import Message, NamedModel, close_models
from reflexio.errors import ProviderRefused, ProviderUnavailable, UnreadableAnswer
from tests.scripted_model import Failure, Filtered, Spoken, scripted_model
from tests.unit.agents.notes import answering, itself


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-key")


def weather(city: str) -> str:
    """The weather in a city."""
    return f"Rain in {city}."


async def test_an_agent_talks_to_a_named_model_and_uses_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted_model([{"city": "Rome"}, Spoken("Take an umbrella.")]) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        agent = Agent("Be brief.", model="openai:gpt-5-mini", tools=[weather])
        result = await agent.run("Rome?")
        await agent.aclose()
    assert (result.output, result.turns) == ("Take an umbrella.", 2)
    assert result.tokens_in == model.prompt_tokens
    assert result.cost_usd == pytest.approx(price("openai:gpt-5-mini", result.tokens_in, result.tokens_out))
    assert result.cost_usd > 0
    first, second = model.requests
    assert (first.instructions, first.case) == ("Be brief.", "Rome?")
    assert first.body["tools"][0]["function"]["description"] == "The weather in a city."
    assert [message["role"] for message in second.body["messages"]][-2:] == ["assistant", "tool"]
    assert second.body["messages"][-1]["content"] == "Rain in Rome."


async def test_a_named_model_is_followed_word_by_word(monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted_model([{"city": "Rome"}, Spoken("Take an umbrella.")]) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        agent = Agent("Be brief.", model="openai:gpt-5-mini", tools=[weather])
        events = [event async for event in agent.stream("Rome?")]
        await agent.aclose()
    kinds = [event.kind.value for event in events]
    assert kinds == ["started", "tool_call", "tool_result", *["model_chunk"] * 3, "completed"]
    assert [event.payload["chunk"] for event in events[3:6]] == ["Take", " an", " umbrella."]
    assert events[-1].payload["result"]["tokens_in"] == model.prompt_tokens


async def test_leaving_a_named_models_stream_closes_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted_model([Spoken("Take an umbrella.")]) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        agent = Agent(model="openai:gpt-5-mini")
        stream = agent.stream("Rome?")
        async for event in stream:
            if event.kind.value == "model_chunk":
                break
        await stream.aclose()
        await agent.aclose()
    assert model.calls == 1


@pytest.mark.parametrize(
    ("answer", "error"),
    [(Failure(401), ProviderRefused), (Failure(503), ProviderUnavailable), (Filtered(), UnreadableAnswer)],
)
async def test_failures_say_who_must_act(answer: Any, error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted_model([answer]) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        with pytest.raises(error):
            await Agent(model="openai:gpt-5-mini").run("Go.")
        await close_models()


async def test_a_named_judge_and_a_named_reflector_are_asked_for_structure(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[Any] = [
        {"score": 0.2, "feedback": "Too short."},
        {"lesson": "Write more.", "trigger": "a text is asked for"},
        {"score": 1.0, "feedback": ""},
    ]
    with scripted_model(answers) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        judge, reflector = Judge("openai:gpt-5-mini", "Long texts."), Reflector("openai:gpt-5-mini")
        result = await reflexion(answering("A", "B"), "Write.", evaluate=judge, reflect=reflector)
        await close_models()
    assert (result.output, result.lessons[0].content, result.usage.calls) == ("B", "Write more.", 5)
    assert result.usage.cost_usd > 0
    assert [asked.wants for asked in model.requests] == [
        {"score", "feedback"},
        {"rationale", "lesson", "trigger"},
        {"score", "feedback"},
    ]


def test_one_judge_serves_program_after_program_without_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted_model(otherwise={"score": 0.9, "feedback": ""}) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        judge = Judge("openai:gpt-5-mini")
        for _ in range(2):
            assert reflexion_sync(lambda task: "out", "task", evaluate=judge).passed
    assert model.calls == 2


def test_a_model_that_cannot_be_opened_costs_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(where: object) -> None:
        raise ImportError("no client for this provider")

    monkeypatch.setattr("reflexio.agents.model._open", missing)
    result = reflexion_sync(lambda task: "out", "task", evaluate=Judge("openai:gpt-5-mini"), max_attempts=1)
    assert (result.output, result.stop_reason) == ("out", "evaluator_error")


async def test_many_first_questions_open_one_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted_model(otherwise=Spoken("Yes.")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        model = NamedModel("openai:gpt-5-mini")
        replies = await asyncio.gather(*(model.complete([Message("user", "Well?")]) for _ in range(5)))
        await model.aclose()
        await model.aclose()
    assert [reply.text for reply in replies] == ["Yes."] * 5


async def test_reflexion_works_with_a_named_model(monkeypatch: pytest.MonkeyPatch) -> None:
    said = ["A", "score: 0.1\nToo short.", "Write more.", "B", "score: 0.9"]
    with scripted_model([Spoken(text) for text in said]) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        result = await Agent("Write.", model="openai:gpt-5-mini", architecture=Reflexion()).run("A text.")
        await close_models()
    assert (result.output, result.turns) == ("B", 5)
    assert "- Write more." in model.requests[3].instructions


async def test_the_scripted_twin_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    assert (await Agent(model=ScriptedModel(["Yes."])).run("Well?")).output == "Yes."


async def test_a_model_without_a_price_costs_nothing_here() -> None:
    assert price("custom:mine", 1000, 1000) == 0.0
    assert (await reflexion(answering(1.0), "task", evaluate=itself)).usage.cost_usd == 0.0
