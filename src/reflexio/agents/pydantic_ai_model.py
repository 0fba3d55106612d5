"""A model of a provider, over pydantic-ai: conversations with tools, and structured questions. Import this late."""

from collections.abc import AsyncGenerator, Iterator, Sequence
from itertools import groupby
from typing import Any

from pydantic_ai import ModelRequest, SystemPromptPart, UserPromptPart
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequestPart,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from reflexio.agents.budget import Usage, price
from reflexio.agents.model import Message, ModelReply, ToolCall, ToolSpec
from reflexio.errors import UnreadableAnswer
from reflexio.models.extraction import Spend
from reflexio.ports.chat import estimate
from reflexio.providers.chat.failures import FAILURES, failure
from reflexio.providers.chat.session import ChatSession, sendable


class PydanticAIModel(ChatSession):
    """Structured questions are those of the provider's chat session; this adds messages and tools."""

    async def complete(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> ModelReply:
        try:
            response = await model_request(self._model, **self._request_with(messages, tools))
        except FAILURES as error:
            raise failure(error, self._address, Spend(self._address.name, calls=1)) from error
        return self._reply(response, messages)

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> AsyncGenerator[str | ModelReply, None]:
        try:
            async with model_request_stream(self._model, **self._request_with(messages, tools)) as events:
                async for event in events:
                    match event:
                        case (
                            PartStartEvent(part=TextPart(content=text))
                            | PartDeltaEvent(delta=TextPartDelta(content_delta=text))
                        ) if text:
                            yield text
                response = events.get()
        except FAILURES as error:
            raise failure(error, self._address, Spend(self._address.name, calls=1)) from error
        yield self._reply(response, messages)

    def _request_with(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> dict[str, Any]:
        definitions = [
            ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=dict(tool.parameters))
            for tool in tools
        ]
        return {
            "messages": list(_to_pydantic_ai(messages)),
            "model_settings": self._settings,
            "model_request_parameters": ModelRequestParameters(function_tools=definitions, allow_text_output=True),
        }

    def _reply(self, response: ModelResponse, messages: Sequence[Message]) -> ModelReply:
        if response.finish_reason == "content_filter":
            raise UnreadableAnswer(f"{self._address.name}: declined to answer.", spend=Spend(calls=1))
        calls = tuple(ToolCall(part.tool_name, part.args_as_dict(), part.tool_call_id) for part in response.tool_calls)
        tokens = response.usage.input_tokens, response.usage.output_tokens
        if response.usage.unmeasured_requests:
            # The server does not count tokens: estimate them, so that a budget still has an effect.
            output = (response.text or "") + "".join(part.args_as_json_str() for part in response.tool_calls)
            tokens = sum(estimate(message.content) for message in messages), estimate(output)
        usage = Usage(1, *tokens, price(self._address.name, *tokens))
        return ModelReply(response.text or "", calls, usage, response)


def _to_pydantic_ai(messages: Sequence[Message]) -> Iterator[ModelMessage]:
    """Consecutive messages to the model (system, user, tools) are one request."""
    for is_reply, group in groupby(messages, key=lambda message: message.role == "assistant"):
        if is_reply:
            for message in group:
                yield message.raw if isinstance(message.raw, ModelResponse) else _response(message)
        else:
            yield ModelRequest(parts=[_request_part(message) for message in group])


def _request_part(message: Message) -> ModelRequestPart:
    content = sendable(message.content)
    match message.role:
        case "system":
            return SystemPromptPart(content)
        case "tool":
            return ToolReturnPart(message.tool_name, content, message.tool_call_id)
        case _:
            return UserPromptPart(content)


def _response(message: Message) -> ModelResponse:
    calls = [ToolCallPart(call.name, dict(call.args), call.id) for call in message.tool_calls]
    return ModelResponse(parts=[*([TextPart(sendable(message.content))] if message.content else []), *calls])
