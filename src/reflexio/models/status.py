"""The states of a learning."""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema


class Status(StrEnum):
    """The status of a learning. On the wire, current is null; null, "None" and "current" are equivalent."""

    CURRENT = "current"
    PENDING = "pending"
    ARCHIVED = "archived"
    ARCHIVE_IN_PROGRESS = "archive_in_progress"
    MERGED = "merged"
    SUPERSEDED = "superseded"
    EXPIRED = "expired"


class PlaybookStatus(StrEnum):
    """A person's decision about an agent playbook."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"


class ProfileTimeToLive(StrEnum):
    """How long a profile is valid."""

    ONE_DAY = "one_day"
    ONE_WEEK = "one_week"
    ONE_MONTH = "one_month"
    ONE_QUARTER = "one_quarter"
    ONE_YEAR = "one_year"
    INFINITY = "infinity"

    @property
    def seconds(self) -> int | None:
        days = {"one_day": 1, "one_week": 7, "one_month": 30, "one_quarter": 90, "one_year": 365}.get(self)
        return days * 86_400 if days else None


def _read(value: Any) -> Any:
    return Status.CURRENT if value is None or value == "None" else value


def _write(value: Status) -> str | None:
    return None if value is Status.CURRENT else value.value


WireStatus = Annotated[
    Status,
    BeforeValidator(_read),
    PlainSerializer(_write, return_type=str | None, when_used="json"),
    WithJsonSchema({"anyOf": [{"type": "string", "enum": [*Status, "None"]}, {"type": "null"}], "default": None}),
]
