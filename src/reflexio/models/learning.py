"""A learning: a profile, a user playbook or an agent playbook, and the states of its life."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from reflexio.models.wire import NEVER_EXPIRES


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


class Scope(StrEnum):
    """When a learning belongs into a prompt: whatever is asked, or when it bears on the message."""

    ALWAYS = "always"
    WHEN_RELEVANT = "when_relevant"


def _read_scope(value: Any) -> Any:
    return value.strip().lower().replace(" ", "_").replace("-", "_") if isinstance(value, str) else value


WireScope = Annotated[Scope, BeforeValidator(_read_scope)]
"""A scope as callers write it: "when relevant" is accepted too."""


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


class Kind(StrEnum):
    """The three kinds of learnings."""

    PROFILE = "profile"
    USER_PLAYBOOK = "user_playbook"
    AGENT_PLAYBOOK = "agent_playbook"


@dataclass(frozen=True)
class Learning:
    """A stored learning of any kind.

    `id` is the number of the row, `key` the public id of a profile. `review` is a person's decision about an agent
    playbook. `cluster` is the number of the cluster that a user playbook belongs to, or that an agent playbook
    summarises; 0 is none. `details` holds what is stored and shown but never searched: evidence, metadata,
    windows, notes.
    """

    kind: Kind
    content: str
    id: int = 0
    key: str = ""
    user_id: str = ""
    agent_version: str = ""
    name: str = ""
    source: str = ""
    request_id: str = ""
    trigger: str = ""
    rationale: str = ""
    tags: tuple[str, ...] = ()
    status: Status = Status.CURRENT
    review: PlaybookStatus = PlaybookStatus.PENDING
    scope: Scope = Scope.WHEN_RELEVANT
    cluster: int = 0
    details: dict[str, Any] = field(default_factory=dict)
    created_at: int = 0
    modified_at: int = 0
    expires_at: int = NEVER_EXPIRES

    @property
    def public_id(self) -> str:
        return self.key or str(self.id)

    @property
    def text(self) -> str:
        """The searchable text: trigger and content."""
        return f"{self.trigger}\n{self.content}" if self.trigger else self.content
