"""From an address to pydantic-ai's model: which protocol, and what is known of the provider's models."""

from collections.abc import Callable
from typing import assert_never

import httpx2
from pydantic_ai.models import Model
from pydantic_ai.profiles import ModelProfile

from reflexio.providers.chat.resolve import PROVIDERS, Address

Profile = Callable[[str], ModelProfile | None]


def model_at(address: Address, http: httpx2.AsyncClient) -> Model:
    match address.protocol:
        case "openai":
            return _openai(address, http)
        case "anthropic":
            return _anthropic(address, http)
        case "google":
            return _google(address, http)
        case _:
            assert_never(address.protocol)


def _openai(address: Address, http: httpx2.AsyncClient) -> Model:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    url, key = address.base_url, address.api_key
    provider: OpenAIProvider | OpenAICompatibleProvider
    if url == PROVIDERS["openai"].base_url:
        provider = OpenAIProvider(url, key, http_client=http)
    else:
        name, profile = address.provider, _profile(address)
        provider = OpenAICompatibleProvider(name, base_url=url, api_key=key, http_client=http, profile=profile)
    provider.client.max_retries = 0
    return OpenAIChatModel(address.model, provider=provider)


def _anthropic(address: Address, http: httpx2.AsyncClient) -> Model:
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    provider = AnthropicProvider(api_key=address.api_key, base_url=address.base_url, http_client=http)
    provider.client.max_retries = 0
    return AnthropicModel(address.model, provider=provider)


def _google(address: Address, http: httpx2.AsyncClient) -> Model:
    from google.genai.types import HttpRetryOptions
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    once = HttpRetryOptions(attempts=1)
    provider = GoogleProvider(api_key=address.api_key, base_url=address.base_url, http_client=http, retry_options=once)
    return GoogleModel(address.model, provider=provider)


def _profile(address: Address) -> Profile | None:
    """What pydantic-ai knows about the models of a provider, such as that none may be forced to call a tool."""
    match address.provider:
        case "openrouter":
            from pydantic_ai.providers.openrouter import OpenRouterProvider

            return OpenRouterProvider.model_profile
        case "deepseek":
            from pydantic_ai.providers.deepseek import DeepSeekProvider

            return DeepSeekProvider.model_profile
        case "moonshot":
            from pydantic_ai.providers.moonshotai import MoonshotAIProvider

            return MoonshotAIProvider.model_profile
        case "dashscope":
            from pydantic_ai.providers.alibaba import AlibabaProvider

            return AlibabaProvider.model_profile
        case "zai":
            from pydantic_ai.providers.zai import ZaiProvider

            return ZaiProvider.model_profile
        case "ollama":
            from pydantic_ai.providers.ollama import OllamaProvider

            return OllamaProvider.model_profile
        case "xai":
            from pydantic_ai.profiles.grok import grok_model_profile

            return grok_model_profile
        case _:
            return None
