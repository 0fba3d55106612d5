"""A conversation with tools, over the same connection as structured questions. Imports pydantic-ai: import it late."""

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

from reflexio.agents.model import Message, ModelReply, ToolCall, ToolSpec
from reflexio.agents.price import price
from reflexio.agents.values import Usage
from reflexio.errors import UnreadableAnswer
from reflexio.models.learned import Spend
from reflexio.ports.chat import estimate
from reflexio.providers.chat.failures import FAILURES, failure
from reflexio.providers.chat.session import ChatSession, sendable


class Conversation(ChatSession):
    async def complete(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> ModelReply:
        try:
            response = await model_request(
                self._model,
                list(_told(messages)),
                model_settings=self._settings,
                model_request_parameters=_parameters(tools),
            )
        except FAILURES as error:
            raise failure(error, self._address, Spend(self._address.name, calls=1)) from error
        return self._reply(response, messages)

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> AsyncGenerator[str | ModelReply, None]:
        try:
            async with model_request_stream(
                self._model,
                list(_told(messages)),
                model_settings=self._settings,
                model_request_parameters=_parameters(tools),
            ) as events:
                async for event in events:
                    if text := _text_in(event):
                        yield text
                response = events.get()
        except FAILURES as error:
            raise failure(error, self._address, Spend(self._address.name, calls=1)) from error
        yield self._reply(response, messages)

    def _reply(self, response: ModelResponse, messages: Sequence[Message]) -> ModelReply:
        if response.finish_reason == "content_filter":
            raise UnreadableAnswer(f"{self._address.name}: declined to answer.", spend=Spend(calls=1))
        calls = tuple(ToolCall(each.tool_name, each.args_as_dict(), each.tool_call_id) for each in response.tool_calls)
        return ModelReply(response.text or "", calls, self._usage(response, messages), response)

    def _usage(self, response: ModelResponse, messages: Sequence[Message]) -> Usage:
        """What the provider counted; servers that do not count are estimated, so that a budget holds with them too."""
        usage = response.usage
        read, written = usage.input_tokens, usage.output_tokens
        if usage.unmeasured_requests:
            said = (response.text or "") + "".join(part.args_as_json_str() for part in response.tool_calls)
            read, written = sum(estimate(each.content) for each in messages), estimate(said)
        return Usage(1, read, written, price(self._address.name, read, written))


def _told(messages: Sequence[Message]) -> Iterator[ModelMessage]:
    """What goes to the model in one go is one request: system, user and tools together."""
    for by_model, group in groupby(messages, key=lambda message: message.role == "assistant"):
        if by_model:
            for message in group:
                yield message.raw if isinstance(message.raw, ModelResponse) else _response(message)
        else:
            yield ModelRequest(parts=[_part(message) for message in group])


def _part(message: Message) -> ModelRequestPart:
    content = sendable(message.content)
    match message.role:
        case "system":
            return SystemPromptPart(content)
        case "tool":
            return ToolReturnPart(message.tool_name, content, message.tool_call_id)
        case _:
            return UserPromptPart(content)


def _response(message: Message) -> ModelResponse:
    calls = [ToolCallPart(each.name, dict(each.args), each.id) for each in message.tool_calls]
    return ModelResponse(parts=[*([TextPart(sendable(message.content))] if message.content else []), *calls])


def _parameters(tools: Sequence[ToolSpec]) -> ModelRequestParameters:
    definitions = [
        ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=dict(tool.parameters))
        for tool in tools
    ]
    return ModelRequestParameters(function_tools=definitions, allow_text_output=True)


def _text_in(event: Any) -> str:
    match event:
        case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return text
        case _:
            return ""
