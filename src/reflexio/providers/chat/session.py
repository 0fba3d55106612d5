"""An open client for one model: the call, one repair of its answer, its cost. Imports pydantic-ai: import it late."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pkgutil import resolve_name
from typing import Any, assert_never

import httpx2
from pydantic import BaseModel, ValidationError
from pydantic_ai import BinaryContent, ImageUrl, ModelRequest, UserContent, UserPromptPart
from pydantic_ai.direct import model_request
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models import Model, ModelRequestParameters, create_async_httpx2_client
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from reflexio.errors import ProviderRefused, UnreadableAnswer
from reflexio.models.extraction import Spend
from reflexio.ports.chat import A, Messages, Reply, estimate
from reflexio.providers.chat.failures import FAILURES, failure, is_about_images
from reflexio.providers.chat.resolve import PROVIDERS, ModelAddress, reasoning_effort

# An answer of 64,000 tokens has some 300,000 bytes.
MAX_ANSWER_BYTES = 2 * 1024 * 1024
CONNECT_SECONDS = 5.0
# Anthropic requires a limit. Above some 21,000 its client would stream, and a stream is many times as long.
ANTHROPIC_MAX_TOKENS = 16_000
MAX_FAULTS = 5
NO_IMAGES = "\n\n(The pictures could not be handed over.)"

# What pydantic-ai knows about the models of a provider, for example that none may be forced to call a tool.
PROFILES = {
    "openrouter": "pydantic_ai.providers.openrouter:OpenRouterProvider.model_profile",
    "deepseek": "pydantic_ai.providers.deepseek:DeepSeekProvider.model_profile",
    "moonshot": "pydantic_ai.providers.moonshotai:MoonshotAIProvider.model_profile",
    "dashscope": "pydantic_ai.providers.alibaba:AlibabaProvider.model_profile",
    "zai": "pydantic_ai.providers.zai:ZaiProvider.model_profile",
    "ollama": "pydantic_ai.providers.ollama:OllamaProvider.model_profile",
    "xai": "pydantic_ai.profiles.grok:grok_model_profile",
}


@dataclass(frozen=True)
class _Completion:
    """A response, the prompt that led to it, and what everything has cost so far."""

    response: ModelResponse
    messages: Messages
    spend: Spend


class ChatSession:
    """An open client for one model. It never retries a failed call: the caller decides when to."""

    def __init__(self, address: ModelAddress) -> None:
        self._address = address
        self._http = _connect(address)
        try:
            self._model = _build_model(address, self._http)
        except UserError as error:
            raise ProviderRefused(f"{address.name}: {error.message}", reason="auth") from error
        self._settings = ModelSettings(
            timeout=address.timeout, request_timeout=address.timeout, cache={"messages": False}
        )
        if address.protocol == "anthropic":
            self._settings["max_tokens"] = ANTHROPIC_MAX_TOKENS

    async def ask(self, messages: Messages, schema: type[A]) -> Reply[A]:
        first = await self._complete(messages, schema, Spend(self._address.name))
        try:
            return Reply(self._parse(first, schema), first.spend)
        except ValidationError as error:
            # Without a word of the answer itself: that could carry text out of its delimiters.
            request = f"Your last answer could not be used: {_faults(error)}. Answer again, in the form asked for."
            repair = replace(first.messages, case=f"{first.messages.case}\n\n{request}")
        second = await self._complete(repair, schema, first.spend)
        try:
            return Reply(self._parse(second, schema), second.spend)
        except ValidationError as error:
            raise UnreadableAnswer(f"{self._address.name}: {_faults(error)}", spend=second.spend) from error

    async def aclose(self) -> None:
        await self._http.aclose()

    def _question_settings(self) -> ModelSettings:
        """Those of all calls; agents, which share the session, reason as much as they like."""
        effort = reasoning_effort(self._model.profile)
        return ModelSettings(**self._settings, thinking=effort) if effort else self._settings

    async def _complete(self, messages: Messages, schema: type[A], spent: Spend) -> _Completion:
        """Asks again without the images when the provider cannot fetch or read one: the text must still be learned."""
        spent += Spend(calls=1)
        try:
            request = ModelRequest([UserPromptPart(_content(messages))], instructions=sendable(messages.instructions))
            parameters = _answer_parameters(schema)
            response = await model_request(
                self._model, [request], model_settings=self._question_settings(), model_request_parameters=parameters
            )
        except FAILURES as error:
            if messages.images and is_about_images(error):
                return await self._complete(replace(messages, case=messages.case + NO_IMAGES, images=()), schema, spent)
            raise failure(error, self._address, spent) from error
        return _Completion(response, messages, spent + _count_tokens(response, messages))

    def _parse(self, completion: _Completion, schema: type[A]) -> A:
        """Reads the arguments of a tool call, or JSON in plain text. Raises pydantic's ValidationError."""
        response = completion.response
        if response.finish_reason == "content_filter":
            words = "" if self._address.addresses else (response.provider_details or {}).get("refusal", "")
            detail = f"{self._address.name}: declined to answer. {words}"
            raise UnreadableAnswer(detail.strip(), spend=completion.spend)
        for part in response.parts:
            if isinstance(part, ToolCallPart):
                args = "" if part.args is None else part.args
                return schema.model_validate_json(args) if isinstance(args, str) else schema.model_validate(args)
        # Models put JSON between words and code fences.
        text = response.text or ""
        start, end = text.find("{"), text.rfind("}")
        return schema.model_validate_json(text[start : end + 1] if 0 <= start < end else text)


def sendable(text: str) -> str:
    """Lone surrogates cannot be sent and become question marks."""
    return text.encode("utf-8", "replace").decode()


def _content(messages: Messages) -> str | Sequence[UserContent]:
    case = sendable(messages.case)
    images = [
        BinaryContent.from_data_uri(image) if image.startswith("data:") else ImageUrl(image)
        for image in messages.images
    ]
    return [case, *images] if images else case


@cache
def _answer_parameters(schema: type[BaseModel]) -> ModelRequestParameters:
    """A tool that the model must call: every provider supports those. Plain text is read all the same."""
    tool = ToolDefinition(
        name="answer",
        parameters_json_schema=_lean(schema.model_json_schema()),
        description="Gives the answer. Call it exactly once.",
        kind="output",
    )
    return ModelRequestParameters(output_mode="tool", output_tools=[tool], allow_text_output=False)


def _lean(schema: Any) -> Any:
    """Without titles, which repeat the names, and defaults, which invite omissions: both cost tokens in every call."""
    if isinstance(schema, list):
        return [_lean(member) for member in schema]
    if not isinstance(schema, dict):
        return schema
    lean = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):  # Here the keys are names of fields: one called `title` stays.
            lean[key] = {name: _lean(member) for name, member in value.items()}
        elif key not in ("title", "default"):
            lean[key] = _lean(value)
    return lean


def _count_tokens(response: ModelResponse, messages: Messages) -> Spend:
    """The provider's count; an estimate for servers that do not count, so that a budget holds with them, too."""
    usage = response.usage
    if not usage.unmeasured_requests:
        return Spend(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)
    output = "".join(part.args_as_json_str() for part in response.tool_calls) + (response.text or "")
    return Spend(input_tokens=estimate(messages.instructions + messages.case), output_tokens=estimate(output))


def _faults(error: ValidationError) -> str:
    lines = []
    for fault in error.errors(include_url=False, include_context=False, include_input=False)[:MAX_FAULTS]:
        # An unexpected field has a name that the model chose; only names of ours are shown.
        place = fault["loc"][:-1] if fault["type"] == "extra_forbidden" else fault["loc"]
        lines.append(f"{'.'.join(map(str, place)) or 'answer'}: {fault['msg']}")
    return "; ".join(lines)


class _BoundedStream(httpx2.AsyncByteStream):
    """Stops reading a body that is longer than any answer."""

    def __init__(self, body: httpx2.AsyncByteStream) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for chunk in self._body:
            count += len(chunk)
            if count > MAX_ANSWER_BYTES:
                raise UnreadableAnswer(f"It is longer than {MAX_ANSWER_BYTES:,} bytes.")
            yield chunk

    async def aclose(self) -> None:
        await self._body.aclose()


async def _bound(response: httpx2.Response) -> None:
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream = _BoundedStream(response.stream)


def _connect(address: ModelAddress) -> httpx2.AsyncClient:
    """A client that limits the length of answers. It asks for uncompressed ones, so that their bytes can be counted."""
    checked = address.addresses.guard(httpx2.AsyncHTTPTransport()) if address.addresses else None
    timeout = httpx2.Timeout(address.timeout, connect=min(address.timeout, CONNECT_SECONDS))
    client = create_async_httpx2_client(timeout=timeout, transport=checked)
    client.headers["Accept-Encoding"] = "identity"
    client.event_hooks = {**client.event_hooks, "response": [_bound]}
    return client


def _build_model(address: ModelAddress, http: httpx2.AsyncClient) -> Model:
    """The model in pydantic-ai's terms. Only the client of its own provider is imported."""
    match address.protocol:
        case "openai":
            return _build_openai_model(address, http)
        case "anthropic":
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            anthropic = AnthropicProvider(api_key=address.api_key, base_url=address.base_url, http_client=http)
            anthropic.client.max_retries = 0
            return AnthropicModel(address.model, provider=anthropic)
        case "google":
            from google.genai.types import HttpRetryOptions
            from pydantic_ai.models.google import GoogleModel
            from pydantic_ai.providers.google import GoogleProvider

            once = HttpRetryOptions(attempts=1)
            google = GoogleProvider(
                api_key=address.api_key, base_url=address.base_url, http_client=http, retry_options=once
            )
            return GoogleModel(address.model, provider=google)
        case _:
            assert_never(address.protocol)


def _build_openai_model(address: ModelAddress, http: httpx2.AsyncClient) -> Model:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    url, key = address.base_url, address.api_key
    provider: OpenAIProvider | OpenAICompatibleProvider
    if url == PROVIDERS["openai"].base_url:
        provider = OpenAIProvider(url, key, http_client=http)
    else:
        name = address.provider
        profile = resolve_name(PROFILES[name]) if name in PROFILES else None
        provider = OpenAICompatibleProvider(name, base_url=url, api_key=key, http_client=http, profile=profile)
    provider.client.max_retries = 0
    return OpenAIChatModel(address.model, provider=provider)
