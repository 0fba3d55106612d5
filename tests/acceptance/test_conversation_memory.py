"""The loop of a conversation on a real server: what the first one taught is in the prompt of the second."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest
from agents import Agent as OpenAIAgent
from agents import Model, ModelResponse, RunConfig, RunHooks, Runner, function_tool
from agents.items import TResponseInputItem
from agents.run import CallModelData, ModelInputData
from agents.usage import Usage
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from openai.types.responses import Response as OpenAIResponse
from openai.types.responses import (
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.messages import ModelResponse as PydanticResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel as FixedModel

from reflexio import ConversationMemory, Interaction, ReflexioClient

TAUGHT, ASKED = "Please never use emojis.", "What are your opening hours?"
OFFLINE = RunConfig(tracing_disabled=True)


@pytest.fixture
def taught(client: ReflexioClient) -> ReflexioClient:
    """Amira said one thing in an earlier conversation."""
    memory = ConversationMemory(user_id="amira", client=client)
    assert memory.publish(TAUGHT, "Understood.")
    assert memory.finish(wait=30)
    return client


def turns(client: ReflexioClient, session: str) -> list[Interaction]:
    """The turns of a session, oldest first."""
    sessions = client.get_requests(session_id=session).sessions
    requests = [request for found in sessions for request in reversed(found.requests)]
    return [turn for request in requests for turn in request.interactions]


def test_the_second_conversation_knows_what_the_first_taught(taught: ReflexioClient) -> None:
    memory = ConversationMemory(user_id="amira", session_id="second", client=taught)
    assert "emojis" in memory.context(ASKED)
    assert memory.publish(ASKED, "From nine to five.")
    user, agent = turns(taught, "second")
    assert (user.role, user.content, agent.role, agent.content) == ("User", ASKED, "Agent", "From nine to five.")
    assert not user.retrieved_learnings
    (learning,) = agent.retrieved_learnings
    stored = taught.get_user_playbooks(user_id="amira").user_playbooks
    assert learning.learning_id in {str(playbook.user_playbook_id) for playbook in stored}


def test_another_user_and_a_message_without_learnings_get_nothing(taught: ReflexioClient) -> None:
    assert ConversationMemory(user_id="jonas", client=taught).context(ASKED) == ""
    memory = ConversationMemory(user_id="amira", session_id="again", client=taught)
    assert "emojis" in memory.context()
    assert memory.publish("Hi!", "Hello!")
    assert memory.publish("Bye!", "")
    *_, goodbye = turns(taught, "again")
    assert (goodbye.content, goodbye.retrieved_learnings) == ("Bye!", [])


def test_a_turn_is_kept_when_its_details_are_refused(taught: ReflexioClient) -> None:
    memory = ConversationMemory(user_id="amira", session_id="odd", client=taught)
    assert memory.publish("Hi!", "Hello!", tools_used=[{"tool_name": "", "tool_data": 7}])
    assert [turn.content for turn in turns(taught, "odd")] == ["Hi!", "Hello!"]


# --- pydantic-ai


def instructions_of(messages: list[ModelMessage]) -> str:
    last = messages[-1]
    return (isinstance(last, ModelRequest) and last.instructions) or ""


class Shop:
    """A scripted model of pydantic-ai that looks up an order, in two attempts, before it answers."""

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def reply(self, messages: list[ModelMessage], info: AgentInfo) -> PydanticResponse:
        self.prompts.append(instructions_of(messages))
        calls: dict[int, ToolCallPart] = {
            1: ToolCallPart("get_order", {"number": 17}),
            2: ToolCallPart("get_order", {"number": 1017}),
        }
        return PydanticResponse([calls.get(len(self.prompts)) or TextPart("From nine to five.")])


async def test_a_run_of_pydantic_ai_has_the_context_and_is_published(taught: ReflexioClient) -> None:
    shop = Shop()
    agent = Agent(FunctionModel(shop.reply), instructions="You are kind.", retries=2)

    @agent.tool_plain
    def get_order(number: int) -> str:
        if number < 1000:
            raise ModelRetry("numbers have four digits")
        return "sent"

    memory = ConversationMemory(user_id="amira", session_id="pydantic", client=taught)
    result = await agent.run(ASKED, capabilities=[memory.pydantic_ai()])
    assert result.output == "From nine to five."
    assert len(shop.prompts) == 3
    assert all(prompt.startswith("You are kind.") and "emojis" in prompt for prompt in shop.prompts)
    user, answer = turns(taught, "pydantic")
    assert (user.content, answer.content) == (ASKED, result.output)
    tools = [(tool.tool_data["input"], tool.status) for tool in answer.tools_used]
    assert tools == [({"number": 17}, "error"), ({"number": 1017}, "ok")]
    assert "four digits" in answer.tools_used[0].tool_data["output"]
    assert len(answer.retrieved_learnings) == 1


class Hours(BaseModel):
    opens: int


async def test_structured_output_of_pydantic_ai_is_published_as_json_and_is_no_tool(taught: ReflexioClient) -> None:
    memory = ConversationMemory(user_id="amira", session_id="typed", client=taught)
    agent = Agent(FixedModel(custom_output_args={"opens": 9}), output_type=Hours)
    await agent.run([ASKED, "And on Sundays?"], capabilities=[memory.pydantic_ai()])
    user, answer = turns(taught, "typed")
    assert (user.content, answer.content) == (f"{ASKED}\nAnd on Sundays?", '{"opens":9}')
    assert not answer.tools_used


async def test_a_stream_of_pydantic_ai_is_published_when_it_is_read(taught: ReflexioClient) -> None:
    memory = ConversationMemory(user_id="amira", session_id="streamed", client=taught)
    agent = Agent(FixedModel(custom_output_text="From nine to five."), capabilities=[memory.pydantic_ai()])
    async with agent.run_stream(ASKED) as stream:
        assert await stream.get_output() == "From nine to five."
    assert [turn.content for turn in turns(taught, "streamed")] == [ASKED, "From nine to five."]


# --- OpenAI Agents SDK


class Clerk(Model):
    """A scripted model of the OpenAI Agents SDK: each reply is a text, or the name and arguments of a tool call."""

    def __init__(self, *replies: str | tuple[str, str]) -> None:
        self.replies = list(replies)
        self.prompts: list[str] = []

    async def get_response(self, system_instructions: str | None, *_: Any, **__: Any) -> ModelResponse:
        self.prompts.append(system_instructions or "")
        return ModelResponse([self._next()], Usage(requests=1), response_id=None)

    async def stream_response(self, system_instructions: str | None, *_: Any, **__: Any) -> AsyncIterator[Any]:
        self.prompts.append(system_instructions or "")
        whole = OpenAIResponse(
            id="1",
            created_at=0,
            model="scripted",
            object="response",
            output=[self._next()],
            parallel_tool_calls=False,
            tool_choice="auto",
            tools=[],
        )
        yield ResponseCompletedEvent(type="response.completed", response=whole, sequence_number=0)

    def _next(self) -> ResponseOutputMessage | ResponseFunctionToolCall:
        reply = self.replies.pop(0)
        if isinstance(reply, tuple):
            name, arguments = reply
            call_id = f"call-{len(self.prompts)}"
            return ResponseFunctionToolCall(type="function_call", call_id=call_id, name=name, arguments=arguments)
        text = ResponseOutputText(type="output_text", text=reply, annotations=[])
        return ResponseOutputMessage(id="1", type="message", role="assistant", status="completed", content=[text])


@function_tool
def get_order(number: int) -> str:
    """The state of an order."""
    if number < 1000:
        raise ValueError("numbers have four digits")
    return "sent"


async def test_a_run_of_the_openai_agents_sdk_has_the_context_and_is_published(taught: ReflexioClient) -> None:
    clerk = Clerk(("get_order", '{"number": 17}'), ("get_order", '{"number": 1017}'), "From nine to five.")
    agent = OpenAIAgent("clerk", instructions="You are kind.", model=clerk, tools=[get_order])
    memory = ConversationMemory(user_id="amira", session_id="openai", client=taught)
    history: list[TResponseInputItem] = [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hello!"},
        {"role": "user", "content": ASKED},
    ]
    result = await Runner.run(agent, history, **memory.openai_agents(run_config=OFFLINE))
    assert result.final_output == "From nine to five."
    assert len(clerk.prompts) == 3
    assert all(prompt.startswith("You are kind.\n\n<learned>") and "emojis" in prompt for prompt in clerk.prompts)
    user, answer = turns(taught, "openai")
    assert (user.content, answer.content) == (ASKED, "From nine to five.")
    tools = [(tool.tool_data["input"], tool.status) for tool in answer.tools_used]
    assert tools == [({"number": 17}, "error"), ({"number": 1017}, "ok")]
    assert len(answer.retrieved_learnings) == 1


class Counting(RunHooks[Any]):
    """The caller's own hooks."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    async def on_handoff(self, *_: Any) -> None:
        self.calls.append("handoff")

    async def on_agent_end(self, *_: Any) -> None:
        self.calls.append("end")


def shout(data: CallModelData[Any]) -> ModelInputData:
    return ModelInputData(data.model_data.input, (data.model_data.instructions or "").upper())


async def test_hooks_filters_and_handoffs_of_the_openai_agents_sdk_stay_in_force(taught: ReflexioClient) -> None:
    second = Clerk("From nine to five.")
    hours = OpenAIAgent("hours", instructions="You know the hours.", model=second)
    first = Clerk(("transfer_to_hours", "{}"))
    desk = OpenAIAgent("desk", instructions="You are kind.", model=first, handoffs=[hours])
    memory = ConversationMemory(user_id="amira", session_id="handoff", client=taught)
    hooks = Counting()
    config = RunConfig(tracing_disabled=True, call_model_input_filter=shout)
    await Runner.run(desk, ASKED, **memory.openai_agents(hooks=hooks, run_config=config))
    assert first.prompts[0].startswith("YOU ARE KIND.\n\n<learned>")
    assert second.prompts[0].startswith("YOU KNOW THE HOURS.\n\n<learned>")
    assert hooks.calls == ["handoff", "end"]
    assert config.call_model_input_filter is shout
    assert [turn.content for turn in turns(taught, "handoff")] == [ASKED, "From nine to five."]


async def test_a_stream_of_the_openai_agents_sdk_is_published(taught: ReflexioClient) -> None:
    clerk = Clerk("From nine to five.")
    memory = ConversationMemory(user_id="amira", session_id="openai-stream", client=taught)
    agent = OpenAIAgent("clerk", model=clerk)
    stream = Runner.run_streamed(agent, ASKED, **memory.openai_agents(run_config=OFFLINE))
    async for _ in stream.stream_events():
        pass
    assert "emojis" in clerk.prompts[0]
    assert [turn.content for turn in turns(taught, "openai-stream")] == [ASKED, "From nine to five."]


# --- LangGraph


class WithKey(MessagesState):
    learned: str


def order_tool(number: str, call_id: str) -> list[AIMessage | ToolMessage]:
    call = {"name": "get_order", "args": {"number": number}, "id": call_id}
    fails = len(number) < 4
    output = "Error: numbers have four digits" if fails else "sent"
    status: Literal["error", "success"] = "error" if fails else "success"
    return [AIMessage("", tool_calls=[call]), ToolMessage(output, tool_call_id=call_id, status=status)]


def with_key(state: WithKey) -> dict[str, Any]:
    assert "emojis" in state["learned"]
    return {"messages": [*order_tool("17", "a"), *order_tool("1017", "b"), AIMessage("From nine to five.")]}


def with_system_message(state: MessagesState) -> dict[str, Any]:
    systems = [message for message in state["messages"] if isinstance(message, SystemMessage)]
    assert ["emojis" in message.text for message in systems] == [True]
    return {"messages": [AIMessage("From nine to five.")]}


def test_a_graph_with_a_key_has_the_context_and_is_published(taught: ReflexioClient) -> None:
    graph = StateGraph(WithKey).add_node("answer", with_key).add_edge(START, "answer").compile()
    memory = ConversationMemory(user_id="amira", session_id="graph", client=taught)
    state = memory.langgraph(graph).invoke({"messages": [("user", ASKED)]})
    assert [type(message) for message in state["messages"][:1]] == [HumanMessage]
    user, answer = turns(taught, "graph")
    assert (user.content, answer.content) == (ASKED, "From nine to five.")
    tools = [(tool.tool_data["input"], tool.status) for tool in answer.tools_used]
    assert tools == [({"number": "17"}, "error"), ({"number": "1017"}, "ok")]
    assert len(answer.retrieved_learnings) == 1


def test_a_graph_without_a_key_gets_one_system_message_in_each_turn_of_its_thread(taught: ReflexioClient) -> None:
    builder = StateGraph(MessagesState).add_node("answer", with_system_message).add_edge(START, "answer")
    memory = ConversationMemory(user_id="amira", session_id="thread", client=taught)
    graph = memory.langgraph(builder.compile(checkpointer=InMemorySaver()))
    config: Any = {"configurable": {"thread_id": "1"}}
    graph.invoke({"messages": [("user", ASKED)]}, config)
    asyncio.run(graph.ainvoke({"messages": HumanMessage("And on Sundays?")}, config))
    assert len(graph.get_state(config).values["messages"]) == 5
    answer = "From nine to five."
    assert [turn.content for turn in turns(taught, "thread")] == [ASKED, answer, "And on Sundays?", answer]


async def test_a_stream_of_a_graph_is_published_when_it_ends(taught: ReflexioClient) -> None:
    graph = StateGraph(WithKey).add_node("answer", with_key).add_edge(START, "answer").compile()
    for number, session in enumerate(("stream", "astream")):
        remembering = ConversationMemory(user_id="amira", session_id=session, client=taught).langgraph(graph)
        given = {"messages": [{"role": "user", "content": ASKED}]}
        if number:
            parts = [part async for part in remembering.astream(given, stream_mode="updates")]
        else:
            parts = list(remembering.stream(given, stream_mode="updates"))
        assert len(parts) == 1
        assert [turn.content for turn in turns(taught, session)] == [ASKED, "From nine to five."]
