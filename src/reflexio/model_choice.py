"""Which chat models an organisation uses, with which keys and limits, and whether they can be used at all."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from reflexio.errors import InvalidRequest, ProviderRefused
from reflexio.models.config import APIKeyConfig, Config
from reflexio.settings import Settings

MOST_CHATS = 64
"""Clients of models that are kept open, unless more are asked at the same time."""

if TYPE_CHECKING:
    from reflexio.providers.chat.resolve import CallOptions, ModelAddress, ProviderCredentials, PydanticChat
    from reflexio.providers.outgoing import OutgoingAddresses


def model_name(settings: Settings, config: Config) -> str:
    """The model for learning; empty for the local learner."""
    if config.api_key_config and config.api_key_config.custom_endpoint:
        return f"custom:{config.api_key_config.custom_endpoint.model}"
    own = config.llm_config.generation_model_name if config.llm_config else None
    return own or settings.model


def provider_keys(settings: Settings, config: Config) -> "dict[str, ProviderCredentials]":
    """The server's keys, overridden by the organisation's own."""
    return {**settings.provider_keys, **(_own_keys(config.api_key_config) if config.api_key_config else {})}


def _own_keys(config: APIKeyConfig) -> "dict[str, ProviderCredentials]":
    from reflexio.providers.chat.resolve import ProviderCredentials

    keys = {}
    for name in APIKeyConfig.model_fields:
        entry = getattr(config, name)
        if entry is not None and entry.api_key is not None:
            provider = {"custom_endpoint": "custom", "gemini": "google"}.get(name, name)
            keys[provider] = ProviderCredentials(entry.api_key.get_secret_value(), entry.api_base or "")
    return keys


def call_options(config: Config) -> "CallOptions":
    """How the models of an organisation are called."""
    from reflexio.providers.chat.resolve import DEFAULT_OPTIONS, CallOptions

    own = config.llm_config
    if own is None:
        return DEFAULT_OPTIONS
    return CallOptions(
        timeout=own.generation_timeout_seconds or DEFAULT_OPTIONS.timeout,
        max_output_tokens=own.max_output_tokens or DEFAULT_OPTIONS.max_output_tokens,
        concurrency=own.concurrency or DEFAULT_OPTIONS.concurrency,
        structured_output=own.structured_output,
    )


def model_address(settings: Settings, config: Config, name: str) -> "ModelAddress":
    """Raises InvalidRequest for a name or an address that cannot be, and ProviderRefused without a key."""
    from reflexio.providers.chat.resolve import address

    return address(name, keys=provider_keys(settings, config), options=call_options(config))


def configured_models(settings: Settings, config: Config) -> Iterator[tuple[str, str]]:
    """The models in use, each with the field or variable that names it."""
    name, writer = model_name(settings, config), config.playbook_optimizer_config.reflection_model
    if name:
        yield name, _named_by(config)
    if writer and name:
        yield writer, "playbook_optimizer_config.reflection_model"


def _named_by(config: Config) -> str:
    if config.api_key_config and config.api_key_config.custom_endpoint:
        return "api_key_config.custom_endpoint"
    is_own = config.llm_config and config.llm_config.generation_model_name
    return "llm_config.generation_model_name" if is_own else "REFLEXIO_MODEL"


def model_problems(settings: Settings, config: Config) -> list[str]:
    """What is wrong with the configured models, as far as it can be known without calling them."""
    problems = []
    for name, place in configured_models(settings, config):
        try:
            model_address(settings, config, name)
        except (InvalidRequest, ProviderRefused) as error:
            problems.append(f"{place}: {error.detail}")
    return problems


def check_models(settings: Settings, before: Config, after: Config) -> None:
    """Refuses a change after which a model cannot be used. Raises InvalidRequest.

    A change of anything else is accepted also while a model cannot be used.
    """
    if after.api_key_config == before.api_key_config and list(configured_models(settings, after)) == list(
        configured_models(settings, before)
    ):
        return
    if problems := model_problems(settings, after):
        raise InvalidRequest(f"The model cannot be used. {' '.join(problems)}")


def _is_chosen(settings: Settings, config: Config, name: str, address: "ModelAddress") -> bool:
    """Whether an organisation has chosen where the model is. Ollama is on the server's own machine."""
    own = _own_keys(config.api_key_config) if config.api_key_config else {}
    is_ollama = address.provider == "ollama" and name != settings.model
    return is_ollama or address.base_url in {credentials.base_url for credentials in own.values()}


class ChatModels:
    """The chat models in use, one for each address: all that ask a model share its connections and its limits.

    `addresses` checks what organisations have chosen; None is for the operator, who may call anything.
    """

    def __init__(self, settings: Settings, addresses: "OutgoingAddresses | None" = None) -> None:
        self._settings = settings
        self._addresses = addresses
        self._chats: dict[ModelAddress, PydanticChat] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def get(self, config: Config, name: str) -> "PydanticChat":
        from reflexio.providers.chat.resolve import PydanticChat

        address = model_address(self._settings, config, name)
        if _is_chosen(self._settings, config, name, address):
            address = replace(address, addresses=self._addresses)
        if address not in self._chats:
            self._drop_oldest()
            self._chats[address] = PydanticChat(address)
        # The one that was used last comes last.
        self._chats[address] = chat = self._chats.pop(address)
        return chat

    def _drop_oldest(self) -> None:
        """Every change of a key or a limit makes another address: those that nobody uses any more are closed."""
        idle = [address for address, chat in self._chats.items() if chat.is_idle]
        for address in idle[: max(0, len(self._chats) - MOST_CHATS + 1)]:
            closing = asyncio.get_running_loop().create_task(self._chats.pop(address).aclose())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
