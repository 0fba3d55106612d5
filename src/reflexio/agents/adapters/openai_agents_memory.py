"""Memory for a run of the OpenAI Agents SDK: the context follows the instructions of whichever agent answers, and
the final answer is published with the tool calls.
"""

import inspect
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agents import Agent, AgentHookContext, RunConfig, RunContextWrapper, RunHooks, Tool
from agents.items import ModelResponse, TResponseInputItem
from agents.run import CallModelData, ModelInputData
from pydantic_core import to_json

from reflexio.agents.conversation_memory import ConversationMemory, tool_used
from reflexio.models.search import ContextResponse

FAILED = re.compile(r"\s*(an )?(error|exception|traceback|failed|failure)\b", re.IGNORECASE)


def memory_run_options(
    memory: ConversationMemory, *, hooks: RunHooks[Any] | None = None, run_config: RunConfig | None = None
) -> dict[str, Any]:
    """`hooks` and `run_config` for `Runner.run`, `run_sync` or `run_streamed`; make them for each run.

    A run that fails is not published.

    >>> await Runner.run(agent, "Where is it?", **memory_run_options(memory(user_id="amira")))  # doctest: +SKIP
    """
    run_config = run_config or RunConfig()
    memory_hooks = MemoryHooks(memory, hooks or RunHooks(), run_config)
    return {
        "hooks": memory_hooks,
        "run_config": replace(run_config, call_model_input_filter=memory_hooks.add_context),
    }


class MemoryHooks(RunHooks[Any]):
    """Reads the message from the first call of the model, and the answer when the run ends."""

    def __init__(self, memory: ConversationMemory, hooks: RunHooks[Any], run_config: RunConfig) -> None:
        self._memory = memory
        self._hooks = hooks
        self._filter = run_config.call_model_input_filter
        self._start()

    def _start(self) -> None:
        self._message = ""
        self._recalled: ContextResponse | None = None
        self._tools: list[tuple[str, str, object]] = []

    async def add_context(self, data: CallModelData[Any]) -> ModelInputData:
        """The filter of the run: it runs before every call of the model, and asks for the context once."""
        if self._recalled is None:
            self._message = _last_user_text(data.model_data.input)
            self._recalled = await self._memory.recall_async(self._message)
        model_data = data.model_data
        if self._filter is not None:
            filtered = self._filter(data)
            model_data = await filtered if inspect.isawaitable(filtered) else filtered
        if not self._recalled.context:
            return model_data
        parts = (model_data.instructions, self._recalled.context)
        return replace(model_data, instructions="\n\n".join(part for part in parts if part))

    async def on_tool_end(self, context: RunContextWrapper[Any], agent: Agent[Any], tool: Tool, result: object) -> None:
        self._tools.append((tool.name, getattr(context, "tool_arguments", ""), result))
        await self._hooks.on_tool_end(context, agent, tool, result)

    async def on_agent_end(self, context: AgentHookContext[Any], agent: Agent[Any], output: Any) -> None:
        message, recalled, tools = self._message, self._recalled, self._tools
        self._start()
        await self._memory.publish_async(
            message,
            _text(output),
            tools_used=(_tool_used(*tool) for tool in tools),
            retrieved=recalled.items if recalled else (),
        )
        await self._hooks.on_agent_end(context, agent, output)

    async def on_agent_start(self, context: AgentHookContext[Any], agent: Agent[Any]) -> None:
        await self._hooks.on_agent_start(context, agent)

    async def on_handoff(self, context: RunContextWrapper[Any], from_agent: Agent[Any], to_agent: Agent[Any]) -> None:
        await self._hooks.on_handoff(context, from_agent, to_agent)

    async def on_tool_start(self, context: RunContextWrapper[Any], agent: Agent[Any], tool: Tool) -> None:
        await self._hooks.on_tool_start(context, agent, tool)

    async def on_llm_start(
        self,
        context: RunContextWrapper[Any],
        agent: Agent[Any],
        system_prompt: str | None,
        input_items: list[TResponseInputItem],
    ) -> None:
        await self._hooks.on_llm_start(context, agent, system_prompt, input_items)

    async def on_llm_end(self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse) -> None:
        await self._hooks.on_llm_end(context, agent, response)


def _last_user_text(items: Sequence[Any]) -> str:
    """The newest message of the user, whose content is text or parts with text."""
    for item in reversed(items):
        if isinstance(item, dict) and item.get("role") == "user":
            content = item.get("content")
            if isinstance(content, str):
                return content
            parts = [part.get("text") for part in content or () if isinstance(part, dict)]
            return "\n".join(part for part in parts if isinstance(part, str))
    return ""


def _text(output: Any) -> str:
    if isinstance(output, str):
        return output
    try:
        return to_json(output, fallback=str).decode()
    except ValueError:
        return str(output)


def _tool_used(name: str, arguments: str, result: object) -> dict[str, Any]:
    """The SDK turns the exception of a tool into a text for the model."""
    try:
        parsed = json.loads(arguments or "{}")
    except ValueError:
        parsed = arguments
    output = _text(result)
    given = parsed if isinstance(parsed, dict) else {"input": parsed}
    return tool_used(name, given, output, is_error=bool(FAILED.match(output)))
