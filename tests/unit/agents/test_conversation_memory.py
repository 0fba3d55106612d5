"""The memory of a conversation fails open, whatever is wrong, and shares its connection."""

import asyncio
from typing import Any

import httpx
import pytest
from agents import Agent as OpenAIAgent
from agents import RunConfig, Runner
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel as FixedModel

import reflexio
from reflexio import AsyncReflexioClient, ConversationMemory, ReflexioClient
from reflexio.agents.conversation_memory import tool_used
from tests.unit.agents.adapters.test_openai_agents import ScriptedModel


def answering(status: int, text: str) -> ReflexioClient:
    """A client whose server gives the same answer to every call."""
    transport = httpx.MockTransport(lambda request: httpx.Response(status, text=text))
    return ReflexioClient(url_endpoint="http://memory.test", retries=0, transport=transport)


def closed() -> ReflexioClient:
    client = answering(200, "{}")
    client.close()
    return client


BROKEN = {
    "nobody listens": lambda: ReflexioClient(url_endpoint="http://127.0.0.1:9", retries=0),
    "an error": lambda: answering(500, "<html>oops</html>"),
    "another server": lambda: answering(200, "<html>hello</html>"),
    "a wrong key": lambda: answering(401, "{}"),
    "closed": closed,
}


@pytest.fixture(params=BROKEN)
def broken(request: pytest.FixtureRequest) -> ConversationMemory:
    return reflexio.memory(user_id="amira", client=BROKEN[request.param]())


def test_without_a_server_there_is_no_context_and_no_error(
    broken: ConversationMemory, caplog: pytest.LogCaptureFixture
) -> None:
    assert broken.context("Hello") == ""
    assert not broken.publish("Hello", "Hi!")
    assert not broken.finish(wait=1)
    assert not asyncio.run(broken.recall_async("Hello")).success
    assert not asyncio.run(broken.finish_async())
    assert [record.name for record in caplog.records] == ["reflexio.memory"] * 5


async def test_an_agent_of_pydantic_ai_runs_without_a_server(broken: ConversationMemory) -> None:
    agent = Agent(FixedModel(custom_output_text="Hi!"))
    assert (await agent.run("Hello", capabilities=[broken.pydantic_ai()])).output == "Hi!"


async def test_an_agent_of_the_openai_agents_sdk_runs_without_a_server(broken: ConversationMemory) -> None:
    options = broken.openai_agents(run_config=RunConfig(tracing_disabled=True))
    result = await Runner.run(OpenAIAgent("clerk", model=ScriptedModel(lambda prompt: "Hi!")), "Hello", **options)
    assert result.final_output == "Hi!"


def test_a_graph_runs_without_a_server(broken: ConversationMemory) -> None:
    def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(f"Hi! {len(state['messages'])}")]}

    graph = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer").compile()
    state = broken.langgraph(graph).invoke({"messages": [("user", "Hello")]})
    assert state["messages"][-1].text == "Hi! 1"


def test_each_conversation_has_a_session_and_all_share_a_connection() -> None:
    first, second = (reflexio.memory(user_id="amira", url="http://127.0.0.1:9") for _ in range(2))
    assert first.session_id != second.session_id
    assert first._client is second._client
    assert reflexio.memory(user_id="amira", url="http://127.0.0.1:9", api_key="k")._client is not first._client
    assert reflexio.memory(user_id="amira", session_id="s1").session_id == "s1"


def test_an_asynchronous_client_is_refused_with_the_remedy() -> None:
    client: Any = AsyncReflexioClient()
    with pytest.raises(TypeError, match="must be a ReflexioClient"):
        reflexio.memory(user_id="amira", client=client)


def test_a_tool_call_has_its_arguments_output_and_outcome() -> None:
    call = tool_used("get_order", {"number": 17}, "no such order", is_error=True)
    assert call == {
        "tool_name": "get_order",
        "tool_data": {"input": {"number": 17}, "output": "no such order"},
        "status": "error",
    }
