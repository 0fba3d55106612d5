"""Small documents under a key: receipts, configurations, stalls, API keys, spending, and operations."""

from dataclasses import dataclass
from typing import Protocol

from reflexio.models.access import ALL_SCOPES, KeyScope
from reflexio.models.extraction import Spend
from reflexio.models.operation import Operation, UserProgress
from reflexio.models.usage import Spent, Stall


@dataclass(frozen=True)
class Receipt:
    """The first response to an idempotency key, the fingerprint of its request, and the user it is about."""

    fingerprint: str
    answer: str
    user_id: str = ""


@dataclass(frozen=True)
class NewApiKey:
    """An API key to store: the start of its token, and the digest."""

    org_id: str
    prefix: str
    digest: str
    label: str = ""
    scopes: frozenset[KeyScope] = ALL_SCOPES
    owner: str = ""


@dataclass(frozen=True)
class StoredApiKey:
    """An API key as it is stored, without the token."""

    id: int
    org_id: str
    label: str
    prefix: str
    created_at: int
    scopes: frozenset[KeyScope]
    owner: str


class Receipts(Protocol):
    def get(self, key: str) -> Receipt | None: ...

    def add(self, key: str, receipt: Receipt, now: int) -> bool:
        """False, without a change, when the key is taken."""


class Configs(Protocol):
    def get(self) -> str | None:
        """The stored document as JSON."""

    def put(self, document: str, now: int) -> None: ...


class Stalls(Protocol):
    """The one stall of an organisation, if there is one."""

    def get(self) -> Stall | None: ...

    def put(self, stall: Stall) -> None: ...

    def remove(self) -> bool:
        """False when there was none."""


class Keys(Protocol):
    def add(self, key: NewApiKey, now: int) -> StoredApiKey: ...

    def find(self, digest: str) -> StoredApiKey | None:
        """The key with this digest, unless it was revoked."""

    def digest_of(self, key_id: int) -> str | None:
        """The digest of a key that was not revoked."""

    def is_revoked(self, digest: str) -> bool:
        """Whether a key with this digest was revoked."""

    def list(self) -> list[StoredApiKey]: ...

    def revoke(self, key_id: int, now: int) -> bool: ...


class Spending(Protocol):
    @property
    def max_daily_tokens(self) -> int | None:
        """The operator's cap on the tokens of a day, for each organisation. None is no cap."""

    def add(self, day: str, operation: str, cost: Spend) -> None:
        """Adds to the row of this day, operation and model."""

    def since(self, day: str) -> list[Spent]:
        """From this day on, newest day first, then by operation and model."""

    def total(self, day: str) -> Spend:
        """The sum over all operations and models."""


class Operations(Protocol):
    def add(self, operation: Operation) -> None:
        """Raises Conflict while another one of the same service is in progress."""

    def get(self, operation_id: str) -> Operation | None: ...

    def hold(self, operation_id: str) -> Operation | None:
        """The same, locked until this transaction ends."""

    def latest(self, service_name: str) -> Operation | None:
        """The one that began last."""

    def newest(self, limit: int) -> list[Operation]:
        """Those of all services that began last, newest first."""

    def running(self, service_name: str | None = None) -> list[Operation]:
        """Running ones of one service or all, locked as by `hold`."""

    def put(self, operation: Operation) -> None:
        """Replaces the one with the same id."""

    def trim(self, service_name: str, keep: int) -> int:
        """Removes all but the newest of a service."""

    def note(self, operation_id: str, outcome: UserProgress) -> UserProgress | None:
        """Records the progress of a user; returns the previous record."""

    def outcomes(self, operation_id: str, limit: int) -> list[UserProgress]:
        """The last ones, in the order of their recording."""
