"""A learning: a profile, a user playbook or an agent playbook, and the states of its life."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from reflexio.models.shape import NEVER_EXPIRES
from reflexio.models.status import PlaybookStatus, Status


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
