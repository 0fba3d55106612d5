from typing import Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, SystemMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from reflexio.agents import reflexion
from reflexio.agents.adapters.langgraph import from_langgraph
from reflexio.agents.budget import price


def polite(said: str) -> tuple[bool, str]:
    return "please" in said, "Say please."


def answer(lessons: str) -> AIMessage:
    usage = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}
    return AIMessage(
        "Tea, please." if "Say please." in lessons else "Tea.",
        usage_metadata=usage,
        response_metadata={"model_name": "gpt-5-mini"},
    )


def graph(state: Any, node: Any) -> Any:
    return StateGraph(state).add_node("ask", node).add_edge(START, "ask").compile()


async def test_lessons_come_in_the_key_that_the_state_has_for_them() -> None:
    class State(MessagesState):
        lessons: str

    seen: list[str] = []

    def ask(state: State) -> dict[str, Any]:
        seen.append(state["lessons"])
        return {"messages": [answer(state["lessons"])]}

    result = await reflexion(from_langgraph(graph(State, ask)), "Ask for tea.", evaluate=polite)
    assert result.output == "Tea, please."
    assert seen[0] == ""
    assert "Say please." in seen[1]
    assert (result.usage.calls, result.usage.input_tokens, result.usage.output_tokens) == (2, 20, 4)
    assert result.usage.cost_usd == pytest.approx(price("openai:gpt-5-mini", 20, 4))


async def test_else_they_stand_before_the_messages() -> None:
    seen: list[int] = []

    def ask(state: MessagesState) -> dict[str, Any]:
        seen.append(len(state["messages"]))
        first = state["messages"][0]
        return {"messages": [answer(first.text if isinstance(first, SystemMessage) else "")]}

    result = await reflexion(from_langgraph(graph(MessagesState, ask)), "Ask for tea.", evaluate=polite)
    assert result.output == "Tea, please."
    assert seen == [1, 2]


async def test_a_state_of_its_own_is_begun_with_the_task_and_read_by_output() -> None:
    class State(TypedDict, total=False):
        drink: str
        hints: str
        order: str

    def order(state: State) -> State:
        return {"order": f"{state['drink']}, please" if state["hints"] else state["drink"]}

    run = from_langgraph(graph(State, order), lessons_key="hints", output=lambda state: state["order"])
    result = await reflexion(run, {"drink": "tea"}, evaluate=polite)
    assert result.output == "tea, please"
    plain = from_langgraph(graph(State, order), lessons_key="hints")
    state = await reflexion(plain, {"drink": "tea"}, evaluate=lambda _: True)
    assert state.output == {"drink": "tea", "hints": "", "order": "tea"}


async def test_a_graph_that_does_not_end_fails_the_attempt() -> None:
    class State(TypedDict):
        n: int

    endless = (
        StateGraph(State)
        .add_node("on", lambda state: {"n": state["n"] + 1})
        .add_edge(START, "on")
        .add_edge("on", "on")
        .compile()
    )
    run = from_langgraph(endless, config={"recursion_limit": 3})
    result = await reflexion(run, {"n": 0}, evaluate=lambda _: True, max_attempts=1)
    assert not result.passed
    assert "3" in result.attempts[0].evaluation.feedback


async def test_what_a_thread_has_cost_before_is_not_counted_again() -> None:
    built = StateGraph(MessagesState).add_node("ask", lambda _: {"messages": [answer("")]}).add_edge(START, "ask")
    run = from_langgraph(
        built.compile(checkpointer=InMemorySaver()), config={"configurable": {"thread_id": "breakfast"}}
    )
    for _ in range(2):
        assert (await reflexion(run, "Ask for tea.", evaluate=polite)).usage.calls == 3
