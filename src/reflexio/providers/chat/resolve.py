"""From the name of a model to the model. Imports nothing heavy: the first question loads pydantic-ai."""

import asyncio
import re
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from reflexio.errors import InvalidRequest, ProviderRefused
from reflexio.ports.chat import A, Messages, Reply
from reflexio.providers.credentials import base_url_of, key_of

if TYPE_CHECKING:
    from reflexio.providers.chat.session import ChatSession
    from reflexio.providers.outgoing import OutgoingAddresses

WireProtocol = Literal["openai", "anthropic", "google"]
StructuredOutput = Literal["tools", "json_schema", "prompt"]
"""How a model is made to answer in a structure: by a tool, by the provider's JSON schema, or by words in the prompt."""


@dataclass(frozen=True)
class CallOptions:
    """How a model is called.

    timeout: seconds for one call in all. max_output_tokens: sent as the limit of an answer, reasoning included.
    concurrency: calls at the same time, 0 for any number. structured_output: None tries what the model can do.
    """

    timeout: float = 120.0
    max_output_tokens: int = 16_000
    concurrency: int = 0
    structured_output: StructuredOutput | None = None


DEFAULT_OPTIONS = CallOptions()


@dataclass(frozen=True)
class ProviderCredentials:
    """The API key of a provider, and its base URL if that is not the usual one."""

    api_key: str = field(default="", repr=False)
    base_url: str = ""


Keys = Mapping[str, ProviderCredentials]
"""Credentials by provider: "openai", "anthropic", "google" … as in `PROVIDERS`."""


@dataclass(frozen=True)
class Provider:
    """The protocol of a provider, its usual base URL, and the environment variable that holds its key."""

    protocol: WireProtocol
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
class ModelAddress:
    """A model at a provider, with everything that is needed to call it.

    `addresses` checks a base URL that an organisation has chosen; one of the operator is not checked.
    """

    provider: str
    model: str
    protocol: WireProtocol
    base_url: str
    api_key: str = field(default="", repr=False)
    options: CallOptions = DEFAULT_OPTIONS
    addresses: "OutgoingAddresses | None" = field(default=None, repr=False)

    @property
    def name(self) -> str:
        return f"{self.provider}:{self.model}"

    @property
    def is_official(self) -> bool:
        """Whether this is the provider itself and no other server with its protocol."""
        return self.base_url == PROVIDERS[self.provider].base_url and bool(PROVIDERS[self.provider].variable)


def address(name: str, *, keys: Keys, options: CallOptions = DEFAULT_OPTIONS) -> ModelAddress:
    """The address of the model called `provider:model` or `provider/model`.

    Raises InvalidRequest for an unknown provider or an unusable base URL, and ProviderRefused without a key.
    """
    spelling, _, model = re.sub("[:/]", "\0", name.strip(), count=1).partition("\0")
    provider = OTHER_NAMES.get(spelling.lower(), spelling.lower())
    known = PROVIDERS.get(provider)
    if known is None or not model:
        names = ", ".join(map(repr, PROVIDERS))
        raise InvalidRequest(f"There is no model {name!r}; write 'openai:<model>', or another of {names}.")
    credentials = keys.get(provider) or keys.get(spelling.lower()) or ProviderCredentials()
    base_url = base_url_of(credentials.base_url or known.base_url, name)
    # Private servers with OpenAI's protocol often need no key; those with Anthropic's and Google's always do.
    is_private = bool(credentials.base_url) and known.protocol == "openai"
    api_key = key_of(credentials.api_key, name)
    if known.variable and not (api_key or is_private):
        raise ProviderRefused(f"{name!r} needs a key: set {known.variable}.", reason="auth")
    return ModelAddress(provider, model.strip(), known.protocol, base_url, api_key, options)


def reasoning_effort(profile: Mapping[str, Any]) -> Literal["low"] | None:
    """Low for models that reason unless they are told otherwise; the others are left without reasoning.

    `profile` is what pydantic-ai knows about a model. What is asked here is found by reading, not by long thought.
    """
    reasons = profile.get("thinking_enabled_by_default") or profile.get("thinking_always_enabled")
    return (
        "low" if reasons or ("google_supports_thinking_level" in profile and profile.get("supports_thinking")) else None
    )


class PydanticChat:
    """Asks the model at `address` through pydantic-ai. Used from one event loop, and closed there.

    At most `concurrency` questions are under way; the others wait, and their time does not count meanwhile.

    pydantic-ai takes one to two seconds to import. The first question imports it, in a thread, so that a server
    starts at once and keeps answering.
    """

    def __init__(self, address: ModelAddress) -> None:
        self.name = address.name
        self._address = address
        self._opening = asyncio.Lock()
        self._session: ChatSession | None = None
        self._asking = 0
        concurrency = address.options.concurrency
        self._slots = asyncio.Semaphore(concurrency) if concurrency else nullcontext()

    @property
    def structured_output(self) -> str:
        """How the last answer was reached; empty before the first one."""
        return self._session.structured_output if self._session else ""

    async def ask(self, messages: Messages, schema: type[A]) -> Reply[A]:
        self._asking += 1
        try:
            async with self._opening:
                if self._session is None:
                    self._session = await asyncio.to_thread(_open_session, self._address)
            async with self._slots:
                return await self._session.ask(messages, schema)
        finally:
            self._asking -= 1

    @property
    def is_idle(self) -> bool:
        return not self._asking

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.aclose()


def _open_session(address: ModelAddress) -> "ChatSession":
    from reflexio.providers.chat.session import ChatSession

    return ChatSession(address)


def resolve(name: str, *, keys: Keys, options: CallOptions = DEFAULT_OPTIONS) -> PydanticChat:
    """The model called `provider:model` or `provider/model`.

    >>> resolve("openai:gpt-5-mini", keys={"openai": ProviderCredentials("sk-…")}).name
    'openai:gpt-5-mini'
    >>> resolve("openai/qwen3:8b", keys={"openai": ProviderCredentials(base_url="http://127.0.0.1:8000/v1")}).name
    'openai:qwen3:8b'
    """
    return PydanticChat(address(name, keys=keys, options=options))
