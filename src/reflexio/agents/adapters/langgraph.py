"""A graph of LangGraph: lessons come to it in a key of its state, or as a leading system message."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.errors import GraphRecursionError
from langgraph.pregel import Pregel

from reflexio.agents.attempt import Attempt, AttemptFailed
from reflexio.agents.price import price
from reflexio.agents.values import Usage


def from_langgraph(
    graph: Pregel[Any, Any, Any, Any],
    *,
    lessons_key: str = "lessons",
    output: Callable[[Any], Any] | None = None,
    **options: Any,
) -> Callable[[Any, Attempt], Awaitable[Any]]:
    """The compiled graph as a callable for `reflexion()`; `options` are those of `graph.ainvoke`, as `config`.

    A task that is a text becomes the user's message, a mapping is the state to begin with. Lessons are written to
    `lessons_key` when the state has it, and else stand before the messages. The answer is what `output` makes of
    the last state; without it the text of the last message, or the state when it holds no messages. A graph that
    does not come to an end fails the attempt.

    >>> result = await reflexion(from_langgraph(graph), "Greet me.", evaluate=is_polite)  # doctest: +SKIP
    """

    async def run(task: Any, attempt: Attempt) -> Any:
        state = dict(task) if isinstance(task, Mapping) else {"messages": [("user", str(task))]}
        lessons = attempt.text()
        if lessons_key in graph.channels:
            state[lessons_key] = lessons
        elif lessons:
            state["messages"] = [SystemMessage(lessons), *state.get("messages", [])]
        before = await _kept(graph, options.get("config")) + len(state.get("messages", []))
        try:
            ended = await graph.ainvoke(state, **options)
        except GraphRecursionError as error:
            raise AttemptFailed(str(error)) from error
        _spend(attempt, _messages(ended)[before:])
        return output(ended) if output else _answer(ended)

    return run


async def _kept(graph: Pregel[Any, Any, Any, Any], config: RunnableConfig | None) -> int:
    """How many messages a checkpointer has kept of what the thread did before."""
    if config is None or not isinstance(graph.checkpointer, BaseCheckpointSaver):
        return 0
    return len(_messages((await graph.aget_state(config)).values))


def _messages(state: Any) -> Sequence[BaseMessage]:
    return state.get("messages", []) if isinstance(state, Mapping) else []


def _answer(state: Any) -> Any:
    messages = _messages(state)
    return messages[-1].text if messages else state


def _spend(attempt: Attempt, new: Sequence[BaseMessage]) -> None:
    """What the messages that came in say that they cost; a model that does not say counts as a call."""
    for message in new:
        if isinstance(message, AIMessage):
            told = message.usage_metadata
            read, written = (told["input_tokens"], told["output_tokens"]) if told else (0, 0)
            model = message.response_metadata.get("model_name", "")
            attempt.spend(Usage(1, read, written, price(f":{model}", read, written)))
