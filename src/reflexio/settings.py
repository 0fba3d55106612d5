"""The settings of a process: environment variables, read here and nowhere else."""

import os
import re
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from reflexio.errors import InvalidRequest

if TYPE_CHECKING:
    from reflexio.providers.chat.resolve import ProviderCredentials

PERIODS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}
LOG_LEVELS = ("critical", "error", "warning", "info", "debug")
LAST_PORT = 65_535
LONGEST_TIMEOUT = 86_400
SWITCH = {**dict.fromkeys(("1", "true", "yes", "on"), True), **dict.fromkeys(("0", "false", "no", "off"), False)}


@dataclass(frozen=True)
class RateLimit:
    """At most `count` calls in `seconds`, to one route or to any ("*")."""

    route: str
    count: int
    seconds: int

    @classmethod
    def parse(cls, text: str) -> "RateLimit":
        """Reads a limit such as "600/minute" or "publish_interaction=60/minute"."""
        match = re.fullmatch(r"(?:([\w*]+)=)?(\d+)/(second|minute|hour|day)", text.strip())
        if not match or int(match[2]) < 1:
            raise InvalidRequest(
                f"REFLEXIO_RATE_LIMITS: {text!r} is not like '600/minute' or 'publish_interaction=60/minute'."
            )
        return cls(match[1] or "*", int(match[2]), PERIODS[match[3]])


@dataclass(frozen=True)
class Settings:
    """How this process runs. The variable of a field is its name in capitals: REFLEXIO_DATA, REFLEXIO_PORT …

    data: folder of the embedded database. database: address of a PostgreSQL instead. host, port: where to listen.
    api_key: a key for the organisation `default`.
    max_body_bytes: the largest request body. rate_limits: such as "600/minute,publish_interaction=60/minute".
    cors_origins: origins of web pages that may call, comma separated. agent_version: of publishes that name none.
    embedder: "local", or such as "openai:text-embedding-3-small". model: such as "openai:gpt-5-mini"; the local
    learner when empty. concurrency: windows learned at the same time. scripts: the folder of assistant scripts;
    without it, any script may run on a server without keys that only this machine reaches. max_connections: open at the
    same time. require_key: refuse all callers without a key, also on this machine. private_addresses: whether models
    and webhooks of organisations may be on private addresses; by default only on a server without keys on loopback.
    gateway_url: the model server behind `/v1`, such as https://api.openai.com/v1; without it there is no pass-through.
    gateway_key: its key, for callers who have a Reflexio key. gateway_user: the user of calls that name none.
    gateway_timeout: seconds for which that server may be silent. max_daily_tokens: what each organisation may spend on
    models in a day, whatever its own budget.
    """

    data: Path = field(default_factory=lambda: Path.home() / ".reflexio")
    host: str = "127.0.0.1"
    port: int = 8081
    api_key: str = field(default="", repr=False)
    max_body_bytes: int = 16 * 1024 * 1024
    rate_limits: tuple[RateLimit, ...] = ()
    cors_origins: tuple[str, ...] = ()
    agent_version: str = "agent-v0"
    log_level: str = "info"
    embedder: str = "local"
    openai_api_key: str = field(default="", metadata={"variable": "OPENAI_API_KEY"}, repr=False)
    openai_base_url: str = field(default="", metadata={"variable": "OPENAI_BASE_URL"})
    model: str = ""
    concurrency: int = 8
    anthropic_api_key: str = field(default="", metadata={"variable": "ANTHROPIC_API_KEY"}, repr=False)
    google_api_key: str = field(default="", metadata={"variable": "GOOGLE_API_KEY"}, repr=False)
    openrouter_api_key: str = field(default="", metadata={"variable": "OPENROUTER_API_KEY"}, repr=False)
    deepseek_api_key: str = field(default="", metadata={"variable": "DEEPSEEK_API_KEY"}, repr=False)
    dashscope_api_key: str = field(default="", metadata={"variable": "DASHSCOPE_API_KEY"}, repr=False)
    moonshot_api_key: str = field(default="", metadata={"variable": "MOONSHOT_API_KEY"}, repr=False)
    minimax_api_key: str = field(default="", metadata={"variable": "MINIMAX_API_KEY"}, repr=False)
    xai_api_key: str = field(default="", metadata={"variable": "XAI_API_KEY"}, repr=False)
    zai_api_key: str = field(default="", metadata={"variable": "ZAI_API_KEY"}, repr=False)
    database: str = field(default="", repr=False)
    scripts: Path | None = None
    max_connections: int = 1000
    require_key: bool = False
    private_addresses: bool | None = None
    max_daily_tokens: int | None = None
    gateway_url: str = ""
    gateway_key: str = field(default="", repr=False)
    gateway_user: str = ""
    gateway_timeout: int = 600

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> "Settings":
        """Reads all variables. An empty value counts as not set."""
        texts = {setting.name: environment.get(variable(setting), "").strip() for setting in fields(cls)}
        return cls(**{name: _parse(name, text) for name, text in texts.items() if text})  # type: ignore[arg-type]

    @property
    def provider_keys(self) -> "dict[str, ProviderCredentials]":
        """The credentials of the model providers, by provider name."""
        from reflexio.providers.chat.resolve import ProviderCredentials

        keys = {
            setting.name.removesuffix("_api_key"): ProviderCredentials(getattr(self, setting.name))
            for setting in fields(self)
            if "variable" in setting.metadata and setting.name.endswith("_api_key")
        }
        keys["openai"] = ProviderCredentials(self.openai_api_key, self.openai_base_url)
        return {name: key for name, key in keys.items() if key.api_key or key.base_url}


def variable(setting: "Field[Any]") -> str:
    """The environment variable of a setting. Keys of model providers have the names that their own tools use."""
    return str(setting.metadata.get("variable", f"REFLEXIO_{setting.name.upper()}"))


def _parse(name: str, text: str) -> object:
    match name:
        case "data" | "scripts":
            return Path(text).expanduser()
        case "port":
            return _parse_number(name, text, maximum=LAST_PORT)
        case "max_body_bytes" | "concurrency" | "max_connections" | "max_daily_tokens":
            return _parse_number(name, text)
        case "gateway_timeout":
            return _parse_number(name, text, maximum=LONGEST_TIMEOUT)
        case "gateway_url":
            return _parse_url(name, text)
        case "require_key" | "private_addresses":
            return _parse_switch(name, text)
        case "log_level":
            if text.lower() not in LOG_LEVELS:
                raise InvalidRequest(f"REFLEXIO_LOG_LEVEL: {text.lower()!r} is none of {', '.join(LOG_LEVELS)}.")
            return text.lower()
        case "rate_limits":
            return tuple(RateLimit.parse(limit) for limit in text.split(",") if limit.strip())
        case "cors_origins":
            return tuple(origin.strip() for origin in text.split(",") if origin.strip())
        case _:
            return text


def _parse_url(name: str, text: str) -> str:
    try:
        parts = urlsplit(text)
        is_plain = not (parts.query or parts.fragment or parts.username or parts.password)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and is_plain
    except ValueError:
        is_usable = False
    if not is_usable:
        raise InvalidRequest(f"REFLEXIO_{name.upper()}: {text!r} is not like 'https://api.openai.com/v1'.")
    return text.rstrip("/")


def _parse_switch(name: str, text: str) -> bool:
    if text.lower() not in SWITCH:
        raise InvalidRequest(f"REFLEXIO_{name.upper()}: {text!r} is neither 1 nor 0.")
    return SWITCH[text.lower()]


def _parse_number(name: str, text: str, *, maximum: int | None = None) -> int:
    if not text.isdecimal():
        raise InvalidRequest(f"REFLEXIO_{name.upper()}: {text!r} is not a whole number.")
    if maximum is not None and int(text) > maximum:
        raise InvalidRequest(f"REFLEXIO_{name.upper()}: {text} is more than {maximum}.")
    return int(text)
