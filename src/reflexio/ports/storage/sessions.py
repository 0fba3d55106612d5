"""Sessions: the requests of one user's conversation, taken together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from reflexio.models.interaction import Interaction
from reflexio.models.paging import Listing, Page
from reflexio.ports.storage.interactions import ALWAYS, TimeRange


@dataclass(frozen=True)
class SessionFilter:
    """Conditions for sessions. The time is that of a session's newest request."""

    user_id: str | None = None
    agent_version: str | None = None
    within: TimeRange = ALWAYS


@dataclass(frozen=True)
class SessionSummary:
    """A session: its newest request, how much it holds, and the first words in it."""

    id: int
    session_id: str
    user_id: str
    agent_version: str
    source: str
    created_at: int
    began_at: int = 0
    requests: int = 0
    turns: int = 0
    learnings: int = 0
    opening: str = ""


class Sessions(Protocol):
    """Two users may name their sessions alike: a session is found by both names."""

    def page(self, where: SessionFilter, page: Page) -> Listing[SessionSummary]:
        """By their newest request, newest first."""

    def get(self, user_id: str, session_id: str) -> SessionSummary | None: ...

    def of_turns(self, turn_ids: Sequence[int]) -> dict[int, SessionSummary]:
        """The session of each of these turns that is stored."""

    def turns(self, user_id: str, session_id: str, limit: int, *, after: int = 0) -> list[Interaction]:
        """Those with a greater number than `after`, oldest first."""

    def turns_before(self, user_id: str, session_id: str, turn_id: int, limit: int) -> list[int]:
        """The numbers of the turns before one, newest first."""

    def agent_versions(self, most: int) -> list[str]:
        """The agent versions that published, by name. Reads one row of each."""
