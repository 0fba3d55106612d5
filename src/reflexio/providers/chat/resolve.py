"""From the name of a model to the model. Imports nothing heavy: pydantic-ai is loaded by the first question."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from reflexio.errors import InvalidRequest, ProviderRefused
from reflexio.ports.chat import Chat

TIMEOUT_SECONDS = 120.0

Protocol = Literal["openai", "anthropic", "google"]


@dataclass(frozen=True)
class Key:
    """What opens a provider: its key, and where it answers if not at its usual address."""

    api_key: str = field(default="", repr=False)
    base_url: str = ""


Keys = Mapping[str, Key]
"""Keys by provider: "openai", "anthropic", "google" … as in `PROVIDERS`."""


@dataclass(frozen=True)
class Provider:
    """How a provider is spoken to. One without an address of its own needs a base URL."""

    protocol: Protocol
    base_url: str = ""
    variable: str = ""


PROVIDERS: dict[str, Provider] = {
    "openai": Provider("openai", "https://api.openai.com/v1", "OPENAI_API_KEY"),
    "anthropic": Provider("anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY"),
    "google": Provider("google", "https://generativelanguage.googleapis.com", "GOOGLE_API_KEY"),
    "openrouter": Provider("openai", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "deepseek": Provider("openai", "https://api.deepseek.com", "DEEPSEEK_API_KEY"),
    "dashscope": Provider("openai", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY"),
    "moonshot": Provider("openai", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
    "minimax": Provider("openai", "https://api.minimax.io/v1", "MINIMAX_API_KEY"),
    "xai": Provider("openai", "https://api.x.ai/v1", "XAI_API_KEY"),
    "zai": Provider("openai", "https://api.z.ai/api/paas/v4", "ZAI_API_KEY"),
    "ollama": Provider("openai", "http://127.0.0.1:11434/v1"),
    "custom": Provider("openai"),
}
OTHER_NAMES = {"gemini": "google", "google-gla": "google", "claude": "anthropic", "moonshotai": "moonshot"}


@dataclass(frozen=True)
class Address:
    """A model at a provider, with all that is needed to speak to it."""

    provider: str
    model: str
    protocol: Protocol
    base_url: str
    api_key: str = field(default="", repr=False)
    timeout: float = TIMEOUT_SECONDS

    @property
    def name(self) -> str:
        return f"{self.provider}:{self.model}"


def resolve(name: str, *, keys: Keys, timeout: float = TIMEOUT_SECONDS) -> Chat:
    """The model called `provider:model` or `provider/model`; `timeout` is for one call, in seconds.

    >>> resolve("openai:gpt-5-mini", keys={"openai": Key("sk-…")}).name
    'openai:gpt-5-mini'
    >>> resolve("openai/qwen3:8b", keys={"openai": Key(base_url="http://127.0.0.1:8000/v1")}).name
    'openai:qwen3:8b'
    """
    from reflexio.providers.chat.model import PydanticChat

    return PydanticChat(address(name, keys=keys, timeout=timeout))


def address(name: str, *, keys: Keys, timeout: float = TIMEOUT_SECONDS) -> Address:
    spelled, model = _parts(name)
    provider = OTHER_NAMES.get(spelled, spelled)
    known = PROVIDERS.get(provider)
    if known is None or not model:
        raise InvalidRequest(f"There is no model {name!r}; write 'openai:<model>', or another of {_providers()}.")
    key = keys.get(provider) or keys.get(spelled) or Key()
    base_url = key.base_url or known.base_url
    if not base_url.startswith(("http://", "https://")):
        raise InvalidRequest(f"The base URL {base_url!r} of {name!r} does not begin with http:// or https://.")
    if known.variable and not (key.api_key or _is_local(known, key)):
        raise ProviderRefused(f"{name!r} needs a key: set {known.variable}.", reason="auth")
    return Address(provider, model, known.protocol, base_url, key.api_key, timeout)


def _parts(name: str) -> tuple[str, str]:
    provider, _, model = re.sub("[:/]", "\0", name.strip(), count=1).partition("\0")
    return provider.lower(), model


def _providers() -> str:
    return ", ".join(repr(each) for each in PROVIDERS)


def _is_local(known: Provider, key: Key) -> bool:
    """Servers of one's own often take any caller; those of Anthropic's and Google's protocols never do."""
    return bool(key.base_url) and known.protocol == "openai"
