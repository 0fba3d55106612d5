"""Keeping things. Storage answers small questions; ranking, thresholds and merging are decided above it.

Reads and writes are plain synchronous functions of a transaction: `await store.read(fn)` sees one consistent
state, `await store.write(fn)` commits all of it, durably, or nothing. A function may be run again or grouped
with others into one commit, so it has no effects but those on its transaction.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from reflexio.models.interaction import Interaction, InteractionData, Request
from reflexio.models.paging import Listing, Page

T = TypeVar("T")


@dataclass(frozen=True)
class TimeRange:
    """Seconds since 1970, both ends included; None is open."""

    start: int | None = None
    end: int | None = None


@dataclass(frozen=True)
class RequestFilter:
    user_id: str | None = None
    request_id: str | None = None
    session_id: str | None = None
    source: str | None = None
    within: TimeRange = TimeRange()


@dataclass(frozen=True)
class Receipt:
    """The first answer to an idempotency key, and what was asked then."""

    fingerprint: str
    answer: str


@dataclass(frozen=True)
class Progress:
    """How far a user's turns have been learned: up to and including the turn `learned_through`."""

    learned_through: int
    unlearned_since: int


@dataclass(frozen=True)
class Key:
    """An API key as it is stored: the token itself is not."""

    id: int
    org_id: str
    label: str
    prefix: str
    created_at: int


@dataclass(frozen=True)
class Tally:
    """How many current learnings a user has, and when the profiles among them changed."""

    profiles: int
    playbooks: int
    oldest_profile: int
    newest_profile: int


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

    def last_of(self, request_id: str) -> int:
        """The id of a request's last turn, 0 when it has none."""
        ...

    def remove(self, user_id: str, interaction_id: int) -> int: ...

    def remove_all(self, user_id: str | None = None) -> int: ...

    def count(self, user_id: str | None = None) -> int: ...


class Users(Protocol):
    def mark_unlearned(self, user_id: str, now: int) -> None:
        """This user has turns that nobody has learned from yet."""
        ...

    def progress(self, user_id: str) -> Progress | None: ...

    def remove(self, user_id: str) -> int: ...


class Learnings(Protocol):
    def tally(self, user_id: str) -> Tally: ...

    def remove_user(self, user_id: str) -> dict[str, int]:
        """Removes a user's profiles and playbooks and counts them by kind."""
        ...


class Receipts(Protocol):
    def get(self, key: str) -> Receipt | None: ...

    def add(self, key: str, receipt: Receipt, now: int) -> bool:
        """False, and nothing is changed, when the key is taken."""
        ...


class Configs(Protocol):
    def get(self) -> str | None:
        """The stored document as JSON."""
        ...

    def put(self, document: str, now: int) -> None: ...


class Tx(Protocol):
    """One transaction of one organisation: no statement reaches beyond it."""

    @property
    def requests(self) -> Requests: ...
    @property
    def interactions(self) -> Interactions: ...
    @property
    def users(self) -> Users: ...
    @property
    def learnings(self) -> Learnings: ...
    @property
    def receipts(self) -> Receipts: ...
    @property
    def configs(self) -> Configs: ...


class Keys(Protocol):
    def add(self, org_id: str, label: str, prefix: str, digest: str, now: int) -> Key: ...

    def find(self, digest: str) -> Key | None:
        """The key with this digest, unless it was revoked."""
        ...

    def list(self) -> list[Key]: ...

    def revoke(self, key_id: int, now: int) -> bool: ...


class Store(Protocol):
    """The rows of one organisation."""

    @property
    def org_id(self) -> str: ...

    async def read(self, fn: Callable[[Tx], T]) -> T: ...

    async def write(self, fn: Callable[[Tx], T]) -> T: ...


class Database(Protocol):
    """All organisations. `StorageUnavailable` and its kin say what the operator must do."""

    @property
    def type(self) -> str: ...

    @property
    def label(self) -> str: ...

    def of(self, org_id: str) -> Store: ...

    async def read_keys(self, fn: Callable[[Keys], T]) -> T: ...

    async def write_keys(self, fn: Callable[[Keys], T]) -> T: ...

    async def forget_receipts(self, before: int) -> int:
        """Of all organisations; nobody repeats a call that late."""
        ...

    async def ping(self) -> None: ...

    async def close(self) -> None: ...
