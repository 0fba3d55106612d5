"""The loop of one conversation: what was learned goes into the prompt, and the answer is published.

Whatever fails here goes to the log `reflexio.memory`, and the agent goes on without memory.
"""

import asyncio
import atexit
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from reflexio.client.endpoint import Endpoint
from reflexio.client.sync import ReflexioClient
from reflexio.errors import InvalidRequest
from reflexio.models.identity import new_id
from reflexio.models.interaction import PublishResponse
from reflexio.models.search import ContextItem, ContextResponse

if TYPE_CHECKING:
    from agents import RunConfig, RunHooks
    from langgraph.pregel import Pregel

    from reflexio.agents.adapters.langgraph_memory import MemoryGraph
    from reflexio.agents.adapters.pydantic_ai_memory import MemoryCapability

log = logging.getLogger("reflexio.memory")
R = TypeVar("R")
Tools: TypeAlias = Iterable[Mapping[str, Any]]

TIMEOUT_SECONDS, RETRIES = 10.0, 1
LONGEST_QUERY, LONGEST_OUTPUT = 10_000, 10_000
POLL_SECONDS = 0.05


class ConversationMemory:
    """What an agent knows of one user, in one conversation. Use one object for each conversation or request.

    Without `client` all objects of a process share one connection to REFLEXIO_URL, or to `url`. The methods named
    `..._async` do the same in a thread.

    >>> conversation = ConversationMemory(user_id="amira", agent_version="shop-1")
    >>> prompt = f"You are kind. {conversation.context('Where is my parcel?')}"  # doctest: +SKIP
    >>> conversation.publish("Where is my parcel?", "It arrives today.")  # doctest: +SKIP
    True
    """

    def __init__(
        self,
        *,
        user_id: str,
        session_id: str = "",
        agent_version: str = "",
        max_tokens: int = 1000,
        client: ReflexioClient | None = None,
        url: str = "",
        api_key: str = "",
    ) -> None:
        if client is not None and not isinstance(client, ReflexioClient):
            raise TypeError("client must be a ReflexioClient: the async methods use it in a thread.")
        self.user_id = user_id
        self.session_id = session_id or f"session-{new_id()}"
        self.agent_version = agent_version
        self.max_tokens = max_tokens
        self._client = client or _shared_client(Endpoint.find(api_key, url))
        self._retrieved: Sequence[ContextItem] = ()
        self._last_request = ""

    def context(self, message: str = "") -> str:
        """The text to put into the prompt that answers this message; empty when nothing fits.

        Without a message it has what always holds for the user.
        """
        recalled = self.recall(message)
        self._retrieved = recalled.items
        return recalled.context

    def recall(self, message: str = "") -> ContextResponse:
        """The context with the learnings in it. It fails open: without a server it is empty."""
        return _fail_open(lambda: self._get_context(message), ContextResponse(success=False))

    def publish(
        self, message: str, answer: str, *, tools_used: Tools = (), retrieved: Iterable[ContextItem] | None = None
    ) -> bool:
        """Stores what the user wrote and what the agent answered, with the learnings that were in the prompt.

        Those are `retrieved`, or else those of the last `context`. An empty message or answer is left out. False when
        it could not be stored.
        """
        learnings = self._retrieved if retrieved is None else retrieved
        self._retrieved = ()
        return _fail_open(lambda: self._publish(message, answer, tools_used, learnings), otherwise=False)

    def finish(self, *, wait: float = 0.0) -> bool:
        """Ends the conversation, so that learning from it does not wait for more turns.

        With `wait` it returns when that has been learned, or after so many seconds. False when it has not.
        """
        return _fail_open(lambda: self._finish(wait), otherwise=False)

    async def context_async(self, message: str = "") -> str:
        return await asyncio.to_thread(self.context, message)

    async def recall_async(self, message: str = "") -> ContextResponse:
        return await asyncio.to_thread(self.recall, message)

    async def publish_async(
        self, message: str, answer: str, *, tools_used: Tools = (), retrieved: Iterable[ContextItem] | None = None
    ) -> bool:
        return await asyncio.to_thread(self.publish, message, answer, tools_used=tools_used, retrieved=retrieved)

    async def finish_async(self, *, wait: float = 0.0) -> bool:
        return await asyncio.to_thread(self.finish, wait=wait)

    def pydantic_ai(self) -> "MemoryCapability":
        """For `capabilities` of a run of pydantic-ai: `agent.run(message, capabilities=[memory.pydantic_ai()])`."""
        from reflexio.agents.adapters import MemoryCapability

        return MemoryCapability(self)

    def openai_agents(
        self, *, hooks: "RunHooks[Any] | None" = None, run_config: "RunConfig | None" = None
    ) -> dict[str, Any]:
        """Options for one run of the OpenAI Agents SDK: `Runner.run(agent, message, **memory.openai_agents())`.

        Your own `hooks` and `run_config` stay in force when they are passed here.
        """
        from reflexio.agents.adapters import memory_run_options

        return memory_run_options(self, hooks=hooks, run_config=run_config)

    def langgraph(self, graph: "Pregel[Any, Any, Any, Any]", *, learned_key: str = "learned") -> "MemoryGraph":
        """A compiled graph with memory: `memory.langgraph(graph).invoke({"messages": [("user", message)]})`.

        The context is written to `learned_key` if the state has it, and otherwise precedes the messages.
        """
        from reflexio.agents.adapters import MemoryGraph

        return MemoryGraph(self, graph, learned_key)

    def _get_context(self, message: str) -> ContextResponse:
        return self._client.get_context(
            message[:LONGEST_QUERY] or None,
            user_id=self.user_id,
            agent_version=self.agent_version or None,
            max_tokens=self.max_tokens,
        )

    def _publish(self, message: str, answer: str, tools_used: Tools, retrieved: Iterable[ContextItem]) -> bool:
        user = {"role": "User", "content": message}
        agent = {"role": "Agent", "content": answer}
        learnings = [{"kind": item.kind, "learning_id": item.id} for item in retrieved]
        details = {"tools_used": [dict(tool) for tool in tools_used], "retrieved_learnings": learnings}
        turns = [turn for turn in (user, agent | details) if any(turn.get(key) for key in ("content", "tools_used"))]
        if not turns:
            return False
        try:
            response = self._send(turns)
        except InvalidRequest as error:
            log.warning("published without tools and learnings: %s", error)
            response = self._send([turn for turn in (user, agent) if turn["content"]])
        self._last_request = response.request_id or ""
        return response.success

    def _send(self, turns: Sequence[dict[str, Any]]) -> PublishResponse:
        return self._client.publish_interaction(
            self.user_id, turns, session_id=self.session_id, agent_version=self.agent_version
        )

    def _finish(self, wait: float) -> bool:
        is_ended = self._client.finalize_session(self.user_id, self.session_id).accepted
        if not (wait and is_ended and self._last_request):
            return is_ended
        deadline = time.monotonic() + wait
        while (status := self._client.get_learning_status(self._last_request)) in {"pending", "processing"}:
            if time.monotonic() >= deadline:
                return False
            time.sleep(POLL_SECONDS)
        return status == "done"


def memory(
    *,
    user_id: str,
    session_id: str = "",
    agent_version: str = "",
    max_tokens: int = 1000,
    client: ReflexioClient | None = None,
    url: str = "",
    api_key: str = "",
) -> ConversationMemory:
    """The memory of one user for one conversation; see `ConversationMemory`."""
    return ConversationMemory(
        user_id=user_id,
        session_id=session_id,
        agent_version=agent_version,
        max_tokens=max_tokens,
        client=client,
        url=url,
        api_key=api_key,
    )


def tool_used(name: str, arguments: Mapping[str, Any], output: str, *, is_error: bool) -> dict[str, Any]:
    """A tool call as it is published. The learner compares the arguments of a call that failed and one that worked."""
    data = {"input": dict(arguments), "output": output[:LONGEST_OUTPUT]}
    return {"tool_name": name, "tool_data": data, "status": "error" if is_error else "ok"}


def _fail_open(call: Callable[[], R], otherwise: R) -> R:
    try:
        return call()
    except Exception as error:  # noqa: BLE001  the agent's run matters more than its memory, whatever fails here
        log.warning("going on without memory: %s", error)
        return otherwise


@cache
def _shared_client(endpoint: Endpoint) -> ReflexioClient:
    client = ReflexioClient(endpoint.api_key, endpoint.url, TIMEOUT_SECONDS, retries=RETRIES)
    atexit.register(client.close)
    return client
