"""A graph of LangGraph: lessons are passed in a key of its state, or as a system message before the others."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.errors import GraphRecursionError
from langgraph.pregel import Pregel

from reflexio.agents.attempt import Attempt, AttemptFailed
from reflexio.agents.budget import Usage, price


def from_langgraph(
    graph: Pregel[Any, Any, Any, Any],
    *,
    lessons_key: str = "lessons",
    output: Callable[[Any], Any] | None = None,
    **options: Any,
) -> Callable[[Any, Attempt], Awaitable[Any]]:
    """The compiled graph as a callable for `reflexion()`; `options` are those of `graph.ainvoke`, such as `config`.

    A task that is text becomes the user's message, a mapping is the initial state. Lessons are written to `lessons_key`
    if the state has it, and otherwise precede the messages. The answer is `output(last state)`; without `output` the
    text of the last message, or the state if it holds no messages. A graph that exceeds its recursion limit fails the
    attempt.

    >>> result = await reflexion(from_langgraph(graph), "Greet me.", evaluate=is_polite)  # doctest: +SKIP
    """

    async def run(task: Any, attempt: Attempt) -> Any:
        state = dict(task) if isinstance(task, Mapping) else {"messages": [("user", str(task))]}
        lessons = attempt.text()
        if lessons_key in graph.channels:
            state[lessons_key] = lessons
        elif lessons:
            state["messages"] = [SystemMessage(lessons), *state.get("messages", [])]
        old = await _count_kept(graph, options.get("config")) + len(state.get("messages", []))
        try:
            last_state = await graph.ainvoke(state, **options)
        except GraphRecursionError as error:
            raise AttemptFailed(str(error)) from error
        messages = _messages(last_state)
        _spend(attempt, messages[old:])
        if output:
            return output(last_state)
        return messages[-1].text if messages else last_state

    return run


async def _count_kept(graph: Pregel[Any, Any, Any, Any], config: RunnableConfig | None) -> int:
    """How many earlier messages of the thread the checkpointer keeps."""
    if config is None or not isinstance(graph.checkpointer, BaseCheckpointSaver):
        return 0
    return len(_messages((await graph.aget_state(config)).values))


def _messages(state: Any) -> Sequence[BaseMessage]:
    return state.get("messages", []) if isinstance(state, Mapping) else []


def _spend(attempt: Attempt, messages: Sequence[BaseMessage]) -> None:
    """Adds up the usage in the new messages; a model that reports none counts as one call."""
    for message in messages:
        if isinstance(message, AIMessage):
            usage = message.usage_metadata
            tokens = (usage["input_tokens"], usage["output_tokens"]) if usage else (0, 0)
            cost = price(f":{message.response_metadata.get('model_name', '')}", *tokens)
            attempt.spend(Usage(1, *tokens, cost))
