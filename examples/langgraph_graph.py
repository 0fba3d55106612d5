"""A graph of LangGraph learns how dates are written. Runs offline: its node is a function.

With a model of your own, call it in the node with `state["lessons"]` in its system message.
"""

import asyncio
import re
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph

from reflexio.agents import MemoryLessons, reflexion
from reflexio.agents.adapters import from_langgraph


class State(MessagesState):
    lessons: str


def answer(state: State) -> dict[str, Any]:
    """Writes dates in words until a lesson says otherwise."""
    return {"messages": [AIMessage("2026-11-16" if "yyyy-mm-dd" in state["lessons"] else "16 November 2026")]}


def is_iso(output: str) -> tuple[bool, str]:
    return bool(re.fullmatch(r"\d{4}-\d\d-\d\d", output)), "Write the date as yyyy-mm-dd."


async def main() -> None:
    graph = StateGraph(State).add_node("answer", answer).add_edge(START, "answer").compile()
    lessons = MemoryLessons()
    for task in ("When was the order placed?", "When was the order sent?"):
        result = await reflexion(from_langgraph(graph), task, evaluate=is_iso, lessons=lessons)
        print(task, result.output, f"({len(result.attempts)} attempts)")


if __name__ == "__main__":
    asyncio.run(main())

# > When was the order placed? 2026-11-16 (2 attempts)
# > When was the order sent? 2026-11-16 (1 attempts)
