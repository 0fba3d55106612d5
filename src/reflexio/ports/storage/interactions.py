"""Requests, turns, and users with unlearned turns."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from reflexio.models.interaction import Interaction, InteractionData, Request
from reflexio.models.learning import Kind
from reflexio.models.paging import Listing, Page
from reflexio.ports.storage.index import Matched, QueryVector


@dataclass(frozen=True)
class TimeRange:
    """Seconds since 1970, both ends inclusive; None is open."""

    start: int | None = None
    end: int | None = None


ALWAYS = TimeRange()


@dataclass(frozen=True)
class Days:
    """Days in UTC as numbers of days since 1970, both ends inclusive."""

    first: int
    last: int


@dataclass(frozen=True)
class RequestFilter:
    user_id: str | None = None
    request_id: str | None = None
    session_id: str | None = None
    source: str | None = None
    within: TimeRange = ALWAYS


@dataclass(frozen=True)
class Waiting:
    """A user with unlearned turns. `retry_at` is when a failed window may be tried again."""

    org_id: str
    user_id: str
    unlearned_since: int
    published_at: int
    attempts: int = 0
    retry_at: int = 0
    last_error: str = ""
    reserved_until: int = 0


@dataclass(frozen=True)
class WaitingUsers:
    """The users of one organisation with unlearned turns. `failed` of them are tried again after `last_error`."""

    count: int = 0
    failed: int = 0
    unlearned_since: int = 0
    last_error: str = ""


@dataclass(frozen=True)
class Backlog:
    """The number of unlearned turns of a user, and whether one of them ends a session or forces extraction."""

    turns: int = 0
    is_urgent: bool = False


@dataclass(frozen=True)
class Unlearned:
    """An unlearned turn with its request."""

    turn: Interaction
    request: Request


@dataclass(frozen=True)
class TurnFilter:
    """Conditions for turns in a search. `ids` restricts it to these turns; without a user, it covers all users."""

    user_id: str | None
    request_id: str | None = None
    within: TimeRange = ALWAYS
    ids: tuple[int, ...] | None = None


@dataclass(frozen=True)
class TurnScope:
    """Conditions for turns in a rerun. Turns published for evaluation only never match.

    `only_unread` leaves the turns that a learner did not understand when it looked for this kind of learnings.
    """

    user_id: str | None = None
    agent_version: str | None = None
    source: str | None = None
    within: TimeRange = ALWAYS
    only_unread: Kind | None = None


@dataclass(frozen=True)
class VersionRequests:
    """The requests of one agent version: how many, in how many sessions of how many users, and when the newest was."""

    agent_version: str
    requests: int
    sessions: int
    users: int
    newest_at: int


@dataclass(frozen=True)
class RemovedRequests:
    """How much one write has removed. Turns of a request with very many are removed before the request itself."""

    requests: int = 0
    turns: int = 0

    def __bool__(self) -> bool:
        return bool(self.requests or self.turns)

    def __add__(self, other: "RemovedRequests") -> "RemovedRequests":
        return RemovedRequests(self.requests + other.requests, self.turns + other.turns)


class Requests(Protocol):
    def add(self, request: Request) -> None:
        """Raises Conflict when the id is taken."""

    def get(self, request_id: str) -> Request | None: ...

    def page(self, where: RequestFilter, page: Page, *, offset: int = 0) -> Listing[Request]:
        """Newest first."""

    def finish(self, user_id: str, session_id: str) -> bool:
        """Marks the newest request of a session as its last; False when there is no such session."""

    def remove_some(self, where: RequestFilter | Sequence[str]) -> RemovedRequests:
        """Removes matching requests with their turns, by filter or by their ids, as many as one write may remove.

        Call it until nothing is removed, each time in another write: others are made in between.
        """

    def by_version(self, within: TimeRange, versions: Sequence[str] | None = None) -> list[VersionRequests]:
        """The agent versions that published, or some of them, the newest first. Requests for evaluation only do not
        count."""

    def count_by_day(self, days: Days) -> dict[int, int]:
        """How many requests came on each day. Days without any are missing."""

    def sum_redacted(self, user_id: str) -> int:
        """How many marks replace what was redacted in the user's requests."""

    def count(self, user_id: str | None = None) -> int: ...


class Interactions(Protocol):
    def add(self, request: Request, turns: Sequence[InteractionData]) -> None: ...

    def page(self, user_id: str | None, within: TimeRange, page: Page) -> Listing[Interaction]:
        """Newest first."""

    def of_requests(self, request_ids: Sequence[str]) -> list[Interaction]:
        """Oldest first."""

    def of_first_requests(self, request_ids: Sequence[str], most_bytes: int) -> tuple[list[Interaction], int]:
        """The turns of as many requests, from the first, as fit in a page; and how many these are, at least one."""

    def unlearned(self, user_id: str, limit: int, *, request_id: str | None = None) -> list[Unlearned]:
        """A user's unlearned turns, oldest first."""

    def backlogs(self, user_ids: Sequence[str]) -> dict[str, Backlog]:
        """The backlogs of users who have one."""

    def users(self, where: TurnScope) -> list[str]:
        """Users with matching turns, by name."""

    def within(self, where: TurnScope, user_id: str, *, last: int | None = None) -> list[Unlearned]:
        """A user's matching turns, learned or not, oldest first; with `last`, only that many of the newest."""

    def unlearned_among(self, ids: Sequence[int]) -> set[int]:
        """The unlearned ones among these turns."""

    def before(self, user_id: str, turn_id: int, limit: int) -> list[Interaction]:
        """The turns before one, oldest first."""

    def mark_learned(self, ids: Sequence[int]) -> int:
        """Marks turns as learned; returns how many were not before."""

    def mark_unread(self, ids: Sequence[int], kinds: Collection[Kind], *, is_unread: bool = True) -> None:
        """Marks turns that the learner did not understand when it looked for these kinds, or clears the marks."""

    def count_unread(self, user_id: str | None = None) -> int:
        """The turns that are marked for some kind."""

    def count_unlearned(self, request_id: str) -> int: ...

    def remove(self, user_id: str, interaction_id: int) -> int: ...

    def count(self, user_id: str | None = None) -> int: ...

    def count_by_day(self, days: Days) -> dict[int, int]:
        """How many turns came on each day. Days without any are missing."""

    def count_unembedded(self, user_id: str) -> int:
        """The number of turns without a vector."""

    def many(self, ids: Sequence[int]) -> dict[int, Interaction]: ...

    def newest(self, where: TurnFilter, limit: int) -> list[int]:
        """Newest first; within a second, the last one first."""

    def by_words(self, where: TurnFilter, query: str, limit: int) -> Matched: ...

    def by_vector(self, where: TurnFilter, query: QueryVector, limit: int, also: Sequence[int] = ()) -> Matched: ...

    def cosines(self, ids: Sequence[int], query: QueryVector) -> dict[int, float]:
        """The cosine of each of these turns, of any user, that has a vector."""


class Users(Protocol):
    def mark_unlearned(self, user_id: str, now: int) -> None:
        """Marks a user as having unlearned turns."""

    def waiting(self, user_id: str) -> Waiting | None: ...

    def longest_waiting(self, limit: int, *, after: Waiting | None = None) -> list[Waiting]:
        """Users with unlearned turns, longest waiting first, from the one after `after`."""

    def all_waiting(self) -> WaitingUsers:
        """All users with unlearned turns, counted; since when the first of them waits, and the newest error."""

    def reserve(self, user_id: str, until: int) -> None:
        """Until then, or until 0 is given, a caller learns from this user's turns and no schedule does."""

    def clear_unlearned(self, user_id: str) -> None:
        """After a window: clears the mark, unless unlearned turns are left."""

    def postpone(self, user_id: str, retry_at: int, error: str) -> None:
        """After a failed window: schedules the next attempt."""

    def wake(self) -> int:
        """Lets all users with failed windows retry now. Their attempts still count."""

    def remove(self, user_id: str) -> int: ...
