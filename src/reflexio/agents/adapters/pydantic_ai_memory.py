"""Memory for a run of pydantic-ai: the context is an instruction, and the answer is published after the run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import DeferredToolRequests, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolReturnPart, UserPromptPart
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import ToolDefinition
from pydantic_core import to_json

from reflexio.agents.conversation_memory import ConversationMemory, tool_used
from reflexio.models.search import ContextResponse


@dataclass
class MemoryCapability(AbstractCapability[Any]):
    """Adds the context to the instructions, and publishes the message, the answer and the tool calls.

    A run that fails is not published. The instructions are no part of the message history.

    >>> agent.run_sync("Where is it?", capabilities=[memory(user_id="amira").pydantic_ai()])  # doctest: +SKIP
    """

    memory: ConversationMemory
    _recalled: ContextResponse | None = field(default=None, init=False, repr=False)
    _output_tools: frozenset[str] = field(default=frozenset(), init=False, repr=False)

    async def for_run(self, ctx: RunContext[Any]) -> "MemoryCapability":
        return MemoryCapability(self.memory)

    def get_instructions(self) -> Any:
        return self._instructions

    async def _instructions(self, ctx: RunContext[Any]) -> str | None:
        if self._recalled is None:
            message = _text(ctx.prompt) or _last_user_text(ctx.messages)
            self._recalled = await self.memory.recall_async(message)
        return self._recalled.context or None

    async def prepare_output_tools(self, ctx: RunContext[Any], tool_defs: list[ToolDefinition]) -> list[ToolDefinition]:
        self._output_tools = frozenset(definition.name for definition in tool_defs)
        return tool_defs

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        await self.memory.publish_async(
            _text(ctx.prompt),
            _answer(result.output),
            tools_used=_tools_used(result.new_messages(), self._output_tools),
            retrieved=self._recalled.items if self._recalled else (),
        )
        return result


def _text(prompt: Any) -> str:
    """The text of a prompt, which may also hold images and documents."""
    if isinstance(prompt, str):
        return prompt
    if not isinstance(prompt, Sequence):
        return ""
    parts = (part if isinstance(part, str) else getattr(part, "content", None) for part in prompt)
    return "\n".join(part for part in parts if isinstance(part, str))


def _last_user_text(messages: Sequence[ModelMessage]) -> str:
    requests = [message for message in messages if isinstance(message, ModelRequest)]
    parts = [part for request in requests for part in request.parts if isinstance(part, UserPromptPart)]
    return _text(parts[-1].content) if parts else ""


def _answer(output: Any) -> str:
    """Structured output as JSON. A run that waits for approvals has not answered yet."""
    if isinstance(output, str) or output is None:
        return output or ""
    if isinstance(output, DeferredToolRequests):
        return ""
    try:
        return to_json(output, fallback=str).decode()
    except ValueError:
        return str(output)


def _tools_used(messages: Sequence[ModelMessage], output_tools: frozenset[str]) -> Iterator[dict[str, Any]]:
    """The tool calls that returned, in order. A model may write its structured output as a call; that is no tool."""
    calls = {
        call.tool_call_id: call
        for message in messages
        if isinstance(message, ModelResponse)
        for call in message.tool_calls
        if call.tool_name not in output_tools
    }
    for message in messages:
        for part in message.parts if isinstance(message, ModelRequest) else ():
            if isinstance(part, ToolReturnPart) and (call := calls.get(part.tool_call_id)):
                arguments = call.args_as_dict()
                output = part.model_response_str()
                yield tool_used(part.tool_name, arguments, output, is_error=part.outcome != "success")
