from collections.abc import Callable

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage, UsageLimits

from reflexio.agents import Budget, reflexion
from reflexio.agents.adapters.pydantic_ai import from_pydantic_ai
from reflexio.agents.budget import price


def scripted(answer: Callable[[str], str], seen: list[str]) -> FunctionModel:
    """A model that answers by its instructions, which are noted."""

    def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        told = messages[-1].instructions if isinstance(messages[-1], ModelRequest) else None
        seen.append(told or "")
        return ModelResponse([TextPart(answer(told or ""))], usage=RequestUsage(input_tokens=10, output_tokens=2))

    return FunctionModel(reply)


def polite(said: str) -> tuple[bool, str]:
    return "please" in said, "Say please."


async def test_lessons_come_as_instructions_after_those_of_the_agent() -> None:
    seen: list[str] = []
    agent = Agent(scripted(lambda told: "Tea, please." if "Say please." in told else "Tea.", seen), instructions="Ask.")
    result = await reflexion(from_pydantic_ai(agent), "Ask for tea.", evaluate=polite)
    assert result.output == "Tea, please."
    assert seen[0] == "Ask."
    assert seen[1].startswith("Ask.")
    assert "<lessons>" in seen[1]
    assert (result.usage.calls, result.usage.input_tokens, result.usage.output_tokens) == (2, 20, 4)


async def test_options_of_the_run_are_passed_on() -> None:
    seen: list[str] = []
    agent = Agent(scripted(lambda _: "Tea, please.", seen), deps_type=str)

    @agent.instructions
    def who(context: object) -> str:
        return f"You serve {getattr(context, 'deps', None)}."

    run = from_pydantic_ai(agent, deps="Ada", instructions="Be brief.")
    await reflexion(run, "Ask for tea.", evaluate=polite)
    assert "You serve Ada." in seen[0]
    assert "Be brief." in seen[0]


async def test_an_answer_of_another_type_fails_the_attempt_and_is_paid_for() -> None:
    class Order(BaseModel):
        drink: str

    agent = Agent(scripted(lambda _: "no JSON", []), output_type=Order, retries=0)
    result = await reflexion(from_pydantic_ai(agent), "Order tea.", evaluate=lambda _: True, max_attempts=2)
    assert not result.passed
    assert "output" in result.attempts[0].evaluation.feedback.lower()
    assert result.usage.calls == 2


async def test_a_run_costs_what_its_model_costs_and_money_is_a_limit() -> None:
    model = scripted(lambda _: "Tea.", [])
    model._model_name = "gpt-5-mini"
    run = from_pydantic_ai(Agent(model))
    once = price("openai:gpt-5-mini", 10, 2)
    result = await reflexion(run, "Ask for tea.", evaluate=polite, max_attempts=9, budget=Budget(usd=1.5 * once))
    assert (result.stop_reason, result.usage.calls) == ("budget", 2)
    assert result.usage.cost_usd == pytest.approx(2 * once)


async def test_limits_of_pydantic_ai_fail_the_attempt() -> None:
    agent = Agent(scripted(lambda _: "Tea.", []))
    run = from_pydantic_ai(agent, usage_limits=UsageLimits(output_tokens_limit=1))
    result = await reflexion(run, "Ask for tea.", evaluate=polite, max_attempts=1)
    assert "limit" in result.attempts[0].evaluation.feedback


async def test_other_errors_are_the_callers() -> None:
    def broken(_: str) -> str:
        raise ConnectionError("no network")

    with pytest.raises(ConnectionError, match="no network"):
        await reflexion(from_pydantic_ai(Agent(scripted(broken, []))), "Ask for tea.", evaluate=polite)
