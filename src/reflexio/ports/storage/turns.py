"""What was said and done, and whose turns wait to be learned from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from reflexio.models.interaction import Interaction, InteractionData, Request
from reflexio.models.paging import Listing, Page
from reflexio.ports.storage.finding import Matched, QueryVector
from reflexio.ports.storage.times import ALWAYS, TimeRange


@dataclass(frozen=True)
class RequestFilter:
    user_id: str | None = None
    request_id: str | None = None
    session_id: str | None = None
    source: str | None = None
    within: TimeRange = ALWAYS


@dataclass(frozen=True)
class Waiting:
    """A user with turns that nobody has learned from yet. `retry_at` is when a failed window may be tried again."""

    org_id: str
    user_id: str
    unlearned_since: int
    published_at: int
    attempts: int = 0
    retry_at: int = 0
    last_error: str = ""


@dataclass(frozen=True)
class Backlog:
    """How many turns of a user nobody has learned from, and whether one of them ends a session or is not to wait."""

    turns: int = 0
    is_urgent: bool = False


@dataclass(frozen=True)
class Unlearned:
    """A turn to learn from, with what its request says about it."""

    turn: Interaction
    request: Request


@dataclass(frozen=True)
class TurnFilter:
    """Which turns to search. `ids` leaves only these of them."""

    user_id: str
    request_id: str | None = None
    within: TimeRange = ALWAYS
    ids: tuple[int, ...] | None = None


@dataclass(frozen=True)
class TurnScope:
    """Turns to learn from once more. What was published for evaluation alone is never among them."""

    user_id: str | None = None
    agent_version: str | None = None
    source: str | None = None
    within: TimeRange = ALWAYS


class Requests(Protocol):
    def add(self, request: Request) -> None:
        """Raises Conflict when the id is taken."""
        ...

    def get(self, request_id: str) -> Request | None: ...

    def page(self, where: RequestFilter, page: Page, *, offset: int = 0) -> Listing[Request]:
        """Newest first."""
        ...

    def finish(self, user_id: str, session_id: str) -> bool:
        """Marks the newest request of a session as its last one; False when there is no such session."""
        ...

    def remove(self, where: RequestFilter) -> int:
        """Removes matching requests with their interactions and tells how many requests went."""
        ...

    def remove_ids(self, request_ids: Sequence[str]) -> int: ...

    def count(self, user_id: str | None = None) -> int: ...


class Interactions(Protocol):
    def add(self, request: Request, turns: Sequence[InteractionData]) -> None: ...

    def page(self, user_id: str | None, within: TimeRange, page: Page) -> Listing[Interaction]:
        """Newest first."""
        ...

    def of_requests(self, request_ids: Sequence[str]) -> list[Interaction]:
        """In the order they were said."""
        ...

    def unlearned(self, user_id: str, limit: int, *, request_id: str | None = None) -> list[Unlearned]:
        """A user's turns that are still to be learned from, oldest first."""
        ...

    def backlogs(self, user_ids: Sequence[str]) -> dict[str, Backlog]:
        """Of those users who have one."""
        ...

    def users(self, where: TurnScope) -> list[str]:
        """Who has turns in it, by name."""
        ...

    def within(self, where: TurnScope, user_id: str, *, last: int | None = None) -> list[Unlearned]:
        """A user's turns in it, learned from or not, oldest first; with `last`, only so many of the newest."""
        ...

    def fresh(self, ids: Sequence[int]) -> set[int]:
        """Those of them that nobody has learned from yet."""
        ...

    def before(self, user_id: str, turn_id: int, limit: int) -> list[Interaction]:
        """The turns that came before one, oldest first."""
        ...

    def mark_learned(self, ids: Sequence[int]) -> int:
        """These turns have been learned from; tells how many had not been."""
        ...

    def count_unlearned(self, request_id: str) -> int: ...

    def remove(self, user_id: str, interaction_id: int) -> int: ...

    def remove_all(self, user_id: str | None = None) -> int: ...

    def count(self, user_id: str | None = None) -> int: ...

    def count_unembedded(self, user_id: str) -> int:
        """Turns that wait for their vector."""
        ...

    def many(self, ids: Sequence[int]) -> dict[int, Interaction]: ...

    def newest(self, where: TurnFilter, limit: int) -> list[int]:
        """Newest first; of one second, the one that was said last."""
        ...

    def by_words(self, where: TurnFilter, query: str, limit: int) -> Matched: ...

    def by_vector(self, where: TurnFilter, query: QueryVector, limit: int, also: Sequence[int] = ()) -> Matched: ...


class Users(Protocol):
    def mark_unlearned(self, user_id: str, now: int) -> None:
        """This user has turns that nobody has learned from yet."""
        ...

    def waiting(self, user_id: str) -> Waiting | None: ...

    def settle(self, user_id: str) -> None:
        """A window is done: the user waits no longer, unless turns are left."""
        ...

    def postpone(self, user_id: str, retry_at: int, error: str) -> None:
        """A window failed: it is tried again, not before `retry_at`."""
        ...

    def wake(self) -> int:
        """All who wait for another try may have it now. Their failures still count: each try has its own number."""
        ...

    def remove(self, user_id: str) -> int: ...
