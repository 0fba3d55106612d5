from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from agents import Agent, GuardrailFunctionOutput, Model, ModelResponse, RunConfig, RunContextWrapper, output_guardrail
from agents.usage import Usage
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from reflexio.agents import reflexion
from reflexio.agents.adapters.openai_agents import from_openai_agents
from reflexio.agents.budget import price

OFFLINE = RunConfig(tracing_disabled=True)


class ScriptedModel(Model):
    """A model that answers by its instructions, which are noted."""

    def __init__(self, answer: Callable[[str], str]) -> None:
        self.model = "gpt-5-mini"
        self.answer = answer
        self.seen: list[str] = []

    async def get_response(self, system_instructions: str | None, *_: Any, **__: Any) -> ModelResponse:
        self.seen.append(system_instructions or "")
        text = ResponseOutputText(type="output_text", text=self.answer(self.seen[-1]), annotations=[])
        message = ResponseOutputMessage(
            id="message", type="message", role="assistant", status="completed", content=[text]
        )
        usage = Usage(requests=1, input_tokens=10, output_tokens=2, total_tokens=12)
        return ModelResponse(output=[message], usage=usage, response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


def polite(said: str) -> tuple[bool, str]:
    return "please" in said, "Say please."


def learning() -> ScriptedModel:
    return ScriptedModel(lambda told: "Tea, please." if "Say please." in told else "Tea.")


async def test_lessons_stand_after_the_instructions() -> None:
    model = learning()
    agent = Agent("waiter", instructions="Ask.", model=model)
    result = await reflexion(from_openai_agents(agent, run_config=OFFLINE), "Ask for tea.", evaluate=polite)
    assert result.output == "Tea, please."
    assert model.seen[0] == agent.instructions == "Ask."
    assert model.seen[1].startswith("Ask.\n\n<lessons>")
    assert (result.usage.calls, result.usage.input_tokens, result.usage.output_tokens) == (2, 20, 4)
    assert result.usage.cost_usd == pytest.approx(price("openai:gpt-5-mini", 20, 4))


@pytest.mark.parametrize("is_async", [True, False])
async def test_instructions_that_are_a_function_are_asked_each_time(is_async: bool) -> None:
    async def told_later(context: RunContextWrapper[str], agent: Agent[str]) -> str:
        return f"Serve {context.context}."

    def told(context: RunContextWrapper[str], agent: Agent[str]) -> str:
        return f"Serve {context.context}."

    model = learning()
    agent = Agent("waiter", instructions=told_later if is_async else told, model=model)
    run = from_openai_agents(agent, context="Ada", run_config=OFFLINE)
    await reflexion(run, "Ask for tea.", evaluate=polite)
    assert model.seen[0] == "Serve Ada."
    assert model.seen[1].startswith("Serve Ada.\n\n<lessons>")


async def test_an_agent_without_instructions_gets_the_lessons_alone() -> None:
    model = learning()
    await reflexion(
        from_openai_agents(Agent("waiter", model=model), run_config=OFFLINE), "Ask for tea.", evaluate=polite
    )
    assert model.seen[0] == ""
    assert model.seen[1].startswith("<lessons>")


async def test_what_a_guardrail_says_is_the_lesson() -> None:
    @output_guardrail
    async def is_polite(context: RunContextWrapper[Any], agent: Agent[Any], output: str) -> GuardrailFunctionOutput:
        passed, words = polite(output)
        return GuardrailFunctionOutput(output_info=words, tripwire_triggered=not passed)

    model = learning()
    agent = Agent("waiter", model=model, output_guardrails=[is_polite])
    result = await reflexion(
        from_openai_agents(agent, run_config=OFFLINE), "Ask for tea.", evaluate=lambda said: "Tea" in said
    )
    assert result.output == "Tea, please."
    assert result.attempts[0].evaluation.feedback == "Say please."
    assert result.usage.calls == 2
