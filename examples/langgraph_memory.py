"""A graph of LangGraph remembers what a user said in another conversation. Start a server first: make serve.

It needs no key: its node is a function. With a model of your own, call it in the node with `state["learned"]` in its
system message.
"""

from typing import Any

from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph

import reflexio


class State(MessagesState):
    learned: str


def answer(state: State) -> dict[str, Any]:
    """Answers with an emoji until the prompt says otherwise."""
    prompt = f"You are the agent of a lamp shop.\n\n{state['learned']}"
    return {"messages": [AIMessage("On its way." if "emoji" in prompt else "On its way! 🎉")]}


def main() -> None:
    graph = StateGraph(State).add_node("answer", answer).add_edge(START, "answer").compile()

    memory = reflexio.memory(user_id="amira", agent_version="shop-1")
    for message in ("Please never use emojis.", "Where is my lamp?"):
        state = memory.langgraph(graph).invoke({"messages": [("user", message)]})
        print(f"{message} {state['messages'][-1].text}")
    memory.finish(wait=30)  # the conversation is over; wait until it has been learned from

    memory = reflexio.memory(user_id="amira", agent_version="shop-1")
    state = memory.langgraph(graph).invoke({"messages": [("user", "And my second order?")]})
    print(f"And my second order? {state['messages'][-1].text}")


if __name__ == "__main__":
    main()

# > Please never use emojis. On its way! 🎉
# > Where is my lamp? On its way! 🎉
# > And my second order? On its way.
