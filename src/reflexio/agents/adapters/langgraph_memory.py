"""Memory for a graph of LangGraph: the context is in a key of its state or before the messages, and the answer is
published when the graph ends.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.pregel import Pregel

from reflexio.agents.conversation_memory import ConversationMemory, log, tool_used
from reflexio.models.search import ContextResponse

MESSAGE_ID = "reflexio-learned"
"""One id for each context: in a thread with a checkpointer, the new context replaces the one before."""


class MemoryGraph(Runnable[Any, Any]):
    """The compiled graph with a memory; every other attribute is that of the graph.

    Input that is no mapping, such as `Command`, is passed on as it is. A graph that fails is not published.

    >>> graph = memory(user_id="amira").langgraph(builder.compile())  # doctest: +SKIP
    """

    def __init__(self, memory: ConversationMemory, graph: Pregel[Any, Any, Any, Any], learned_key: str) -> None:
        self._memory = memory
        self._graph = graph
        self._learned_key = learned_key

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._graph, name)

    # `input` is the name that LangChain gives the argument.
    def invoke(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Any:  # noqa: A002
        message = _message(input)
        return self._graph.invoke(*self._prepare(input, config, message, self._memory.recall(message)), **options)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Any:  # noqa: A002
        message = _message(input)
        recalled = await self._memory.recall_async(message)
        return await self._graph.ainvoke(*self._prepare(input, config, message, recalled), **options)

    def stream(
        self,
        input: Any,  # noqa: A002
        config: RunnableConfig | None = None,
        **options: Any,
    ) -> Iterator[Any]:
        message = _message(input)
        yield from self._graph.stream(*self._prepare(input, config, message, self._memory.recall(message)), **options)

    async def astream(
        self,
        input: Any,  # noqa: A002
        config: RunnableConfig | None = None,
        **options: Any,
    ) -> AsyncIterator[Any]:
        message = _message(input)
        recalled = await self._memory.recall_async(message)
        async for part in self._graph.astream(*self._prepare(input, config, message, recalled), **options):
            yield part

    def _prepare(
        self, state: Any, config: RunnableConfig | None, message: str, recalled: ContextResponse
    ) -> tuple[Any, RunnableConfig]:
        """The input with the context, and the configuration with what publishes at the end."""
        publishing = _PublishAtEnd(self._memory, message, recalled)
        return self._with_context(state, recalled.context), merge_configs(config, {"callbacks": [publishing]})

    def _with_context(self, state: Any, context: str) -> Any:
        if not isinstance(state, Mapping):
            return state
        if self._learned_key in self._graph.channels:
            return {**state, self._learned_key: context}
        if not context or "messages" not in self._graph.channels:
            return state
        given = state.get("messages", [])
        messages = given if isinstance(given, list) else [given]
        return {**state, "messages": [SystemMessage(context, id=MESSAGE_ID), *messages]}


class _PublishAtEnd(BaseCallbackHandler):
    """Publishes when the outermost run ends, with what its last state holds after the user's message."""

    def __init__(self, memory: ConversationMemory, message: str, recalled: ContextResponse) -> None:
        self._memory = memory
        self._message = message
        self._recalled = recalled
        self._outermost: UUID | None = None

    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: UUID, **_: Any) -> None:
        self._outermost = self._outermost or run_id

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **_: Any) -> None:
        if run_id != self._outermost:
            return
        messages = _messages_after_the_users(outputs)
        last = messages[-1] if messages else None
        answer = last.text if isinstance(last, AIMessage) else ""
        self._memory.publish(self._message, answer, tools_used=_tools_used(messages), retrieved=self._recalled.items)


def _message(state: Any) -> str:
    """The text of the newest message of the user in the input."""
    given = state.get("messages") if isinstance(state, Mapping) else None
    try:
        messages = convert_to_messages(given if isinstance(given, list) else [given] if given else [])
    except (ValueError, TypeError, NotImplementedError) as error:
        log.warning("going on without the message: %s", error)
        return ""
    return next((str(message.text) for message in reversed(messages) if isinstance(message, HumanMessage)), "")


def _messages_after_the_users(state: Any) -> list[BaseMessage]:
    messages = state.get("messages") if isinstance(state, Mapping) else getattr(state, "messages", None)
    new: list[BaseMessage] = []
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, HumanMessage):
            new = []
        elif isinstance(message, BaseMessage):
            new.append(message)
    return new


def _tools_used(messages: list[BaseMessage]) -> Iterator[dict[str, Any]]:
    calls = {call["id"]: call for message in messages if isinstance(message, AIMessage) for call in message.tool_calls}
    for message in messages:
        if isinstance(message, ToolMessage) and (call := calls.get(message.tool_call_id)):
            output, is_error = str(message.text), message.status == "error"
            yield tool_used(call["name"], call["args"], output, is_error=is_error)
