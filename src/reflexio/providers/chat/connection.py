"""The HTTP client of one model, and the model in pydantic-ai's terms. Answers are bounded and brought into one form."""

import zlib
from collections.abc import AsyncIterator
from contextvars import ContextVar
from pkgutil import resolve_name
from typing import assert_never

import httpx2
from pydantic_ai.models import Model, create_async_httpx2_client

from reflexio.errors import UnreadableAnswer
from reflexio.providers.chat import completion
from reflexio.providers.chat.reported_errors import seconds_to_wait
from reflexio.providers.chat.resolve import PROVIDERS, ModelAddress

# An answer of 64,000 tokens has some 300,000 bytes.
MAX_ANSWER_BYTES = 2 * 1024 * 1024
CONNECT_SECONDS = 5.0
DEFLATED, DETECTS_HEADER = ("gzip", "x-gzip", "deflate"), 32

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


IS_QUESTION: ContextVar[bool] = ContextVar("is_question", default=False)
"""Whether the current call wants a whole answer, although it may have asked for a stream."""


class _BoundedStream(httpx2.AsyncByteStream):
    """Stops reading a body that is longer than any answer; one that is compressed all the same is inflated here."""

    def __init__(self, body: httpx2.AsyncByteStream, *, is_deflated: bool) -> None:
        self._body = body
        self._inflate = zlib.decompressobj(zlib.MAX_WBITS | DETECTS_HEADER) if is_deflated else None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for chunk in self._body:
            try:
                part = self._inflate.decompress(chunk, MAX_ANSWER_BYTES + 1) if self._inflate else chunk
            except zlib.error as error:
                raise UnreadableAnswer("It is compressed, and broken.") from error
            count += len(part)
            if count > MAX_ANSWER_BYTES:
                raise UnreadableAnswer(f"It is longer than {MAX_ANSWER_BYTES:,} bytes.")
            yield part

    async def aclose(self) -> None:
        await self._body.aclose()


async def _bound(response: httpx2.Response) -> None:
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    is_deflated = response.headers.get("content-encoding", "").lower() in DEFLATED
    if is_deflated:
        del response.headers["content-encoding"]
    response.stream = _BoundedStream(response.stream, is_deflated=is_deflated)


async def _regularise(response: httpx2.Response) -> None:
    """Brings the answer of an OpenAI-compatible server into the one form that the client reads."""
    is_stream = b'"stream":true' in response.request.content.replace(b" ", b"")
    is_encoded = response.headers.get("content-encoding", "identity") != "identity"
    if is_encoded or (is_stream and not IS_QUESTION.get()):
        return
    stream = response.stream
    assert isinstance(stream, httpx2.AsyncByteStream)
    try:
        body = b"".join([chunk async for chunk in stream])
    finally:
        await stream.aclose()
    location = response.headers.get("location", "")
    is_error = response.status_code >= 400
    response.status_code, content = completion.regular(response.status_code, body, location)
    wait_header = response.headers.get("retry-after", "")
    if is_error and (wait := seconds_to_wait(wait_header, body.decode("utf-8", "replace"))):
        response.headers["retry-after"] = str(wait)
    response.headers["content-length"] = str(len(content))
    if content is not body:
        response.headers["content-type"] = "application/json"
    response.stream = httpx2.ByteStream(content)


def connect(address: ModelAddress) -> httpx2.AsyncClient:
    """A client that limits the length of answers. It asks for uncompressed ones, so that their bytes can be counted."""
    timeout = address.options.timeout
    client = create_async_httpx2_client(
        timeout=httpx2.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS)),
        transport=address.addresses.guard(httpx2.AsyncHTTPTransport()) if address.addresses else None,
    )
    client.headers["Accept-Encoding"] = "identity"
    hooks = [_bound, _regularise] if address.protocol == "openai" else [_bound]
    client.event_hooks = {**client.event_hooks, "response": hooks}
    return client


def build_model(address: ModelAddress, http: httpx2.AsyncClient) -> Model:
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
