"""The process: a handful of REFLEXIO_* variables, read here and nowhere else."""

import os
import re
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reflexio.errors import InvalidRequest

if TYPE_CHECKING:
    from reflexio.providers.chat.resolve import ProviderCredentials

PERIODS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}
LOG_LEVELS = ("critical", "error", "warning", "info", "debug")
LAST_PORT = 65_535


@dataclass(frozen=True)
class RateLimit:
    """`count` calls in `seconds`, for one route or for all of them ("*")."""

    route: str
    count: int
    seconds: int

    @classmethod
    def read(cls, text: str) -> "RateLimit":
        match = re.fullmatch(r"(?:([\w*]+)=)?(\d+)/(second|minute|hour|day)", text.strip())
        if not match or int(match[2]) < 1:
            raise InvalidRequest(
                f"REFLEXIO_RATE_LIMITS: {text!r} is not like '600/minute' or 'publish_interaction=60/minute'."
            )
        return cls(match[1] or "*", int(match[2]), PERIODS[match[3]])


@dataclass(frozen=True)
class Settings:
    """How this process runs. Each field has a variable of its name: REFLEXIO_DATA, REFLEXIO_PORT …

    Variables: data (folder of the embedded database), host, port, api_key (one key for the organisation
    `default`), max_body_bytes, rate_limits ("600/minute,publish_interaction=60/minute"; none unless set),
    cors_origins (comma separated; none unless set), agent_version (of publishes that name none), log_level,
    embedder ("local", or "openai:text-embedding-3-small" with OPENAI_API_KEY and OPENAI_BASE_URL).
    model (as "openai:gpt-5-mini"; the learner without a model unless set), concurrency (windows side by side),
    scripts (folder that assistant scripts must be in; on a server that only this machine reaches, anywhere).
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
    scripts: Path | None = None

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> "Settings":
        given = {each.name: environment.get(variable(each), "").strip() for each in fields(cls)}
        return cls(**{name: _parse(name, text) for name, text in given.items() if text})  # type: ignore[arg-type]

    @property
    def provider_keys(self) -> "dict[str, ProviderCredentials]":
        """What opens the providers of models, by their names."""
        from reflexio.providers.chat.resolve import ProviderCredentials

        keys = {
            "openai": ProviderCredentials(self.openai_api_key, self.openai_base_url),
            "anthropic": ProviderCredentials(self.anthropic_api_key),
            "google": ProviderCredentials(self.google_api_key),
        }
        return {name: key for name, key in keys.items() if key.api_key or key.base_url}


def variable(setting: "Field[Any]") -> str:
    """The environment variable of a setting; providers' keys keep the names that people have set already."""
    return str(setting.metadata.get("variable", f"REFLEXIO_{setting.name.upper()}"))


def _parse(name: str, text: str) -> object:
    match name:
        case "data" | "scripts":
            return Path(text).expanduser()
        case "port":
            return _number(name, text, most=LAST_PORT)
        case "max_body_bytes" | "concurrency":
            return _number(name, text)
        case "log_level":
            return _one_of(LOG_LEVELS, name, text.lower())
        case "rate_limits":
            return tuple(RateLimit.read(each) for each in text.split(",") if each.strip())
        case "cors_origins":
            return tuple(each.strip() for each in text.split(",") if each.strip())
        case _:
            return text


def _number(name: str, text: str, *, most: int | None = None) -> int:
    if not text.isdecimal():
        raise InvalidRequest(f"REFLEXIO_{name.upper()}: {text!r} is not a whole number.")
    if most is not None and int(text) > most:
        raise InvalidRequest(f"REFLEXIO_{name.upper()}: {text} is more than {most}.")
    return int(text)


def _one_of(known: tuple[str, ...], name: str, text: str) -> str:
    if text not in known:
        raise InvalidRequest(f"REFLEXIO_{name.upper()}: {text!r} is none of {', '.join(known)}.")
    return text
