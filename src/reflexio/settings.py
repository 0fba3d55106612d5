"""The process: a handful of REFLEXIO_* variables, read here and nowhere else."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from reflexio.errors import InvalidRequest

LAST_PORT = 65_535
LEVELS = ("critical", "error", "warning", "info", "debug", "trace")
PERIODS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}


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
    cors_origins (comma separated; none unless set), agent_version (of publishes that name none), log_level.
    """

    data: Path = field(default_factory=lambda: Path.home() / ".reflexio")
    host: str = "127.0.0.1"
    port: int = 8081
    api_key: str = ""
    max_body_bytes: int = 16 * 1024 * 1024
    rate_limits: tuple[RateLimit, ...] = ()
    cors_origins: tuple[str, ...] = ()
    agent_version: str = "agent-v0"
    log_level: str = "info"

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> "Settings":
        given = {each.name: environment.get(f"REFLEXIO_{each.name.upper()}", "").strip() for each in fields(cls)}
        return cls(**{name: _parse(name, text) for name, text in given.items() if text})  # type: ignore[arg-type]


def _parse(name: str, text: str) -> object:
    match name:
        case "data":
            return Path(text).expanduser()
        case "port" | "max_body_bytes":
            return _number(name, text)
        case "log_level":
            return _level(text)
        case "rate_limits":
            return tuple(RateLimit.read(each) for each in text.split(",") if each.strip())
        case "cors_origins":
            return tuple(each.strip() for each in text.split(",") if each.strip())
        case _:
            return text


def _number(name: str, text: str) -> int:
    if not text.isdecimal():
        raise InvalidRequest(f"REFLEXIO_{name.upper()}: {text!r} is not a whole number.")
    if name == "port" and int(text) > LAST_PORT:
        raise InvalidRequest(f"REFLEXIO_PORT: {text!r} is greater than {LAST_PORT}.")
    return int(text)


def _level(text: str) -> str:
    if text.lower() not in LEVELS:
        raise InvalidRequest(f"REFLEXIO_LOG_LEVEL: {text!r} is none of {', '.join(LEVELS)}.")
    return text.lower()
