"""Small documents under a key: receipts, configurations, stalls, API keys, spending, and operations."""

from dataclasses import dataclass
from typing import Protocol

from reflexio.models.learned import Spend
from reflexio.models.stall import Stall
from reflexio.models.usage import Spent


@dataclass(frozen=True)
class Receipt:
    """The first response to an idempotency key, and the fingerprint of its request."""

    fingerprint: str
    answer: str


@dataclass(frozen=True)
class Key:
    """An API key as it is stored, without the token."""

    id: int
    org_id: str
    label: str
    prefix: str
    created_at: int


class Receipts(Protocol):
    def get(self, key: str) -> Receipt | None: ...

    def add(self, key: str, receipt: Receipt, now: int) -> bool:
        """False, without a change, when the key is taken."""
        ...


class Configs(Protocol):
    def get(self) -> str | None:
        """The stored document as JSON."""
        ...

    def put(self, document: str, now: int) -> None: ...


class Stalls(Protocol):
    """The one stall of an organisation, if there is one."""

    def get(self) -> Stall | None: ...

    def put(self, stall: Stall) -> None: ...

    def remove(self) -> bool:
        """False when there was none."""
        ...


class Keys(Protocol):
    def add(self, org_id: str, label: str, prefix: str, digest: str, now: int) -> Key: ...

    def find(self, digest: str) -> Key | None:
        """The key with this digest, unless it was revoked."""
        ...

    def is_revoked(self, digest: str) -> bool:
        """Whether a key with this digest was revoked."""
        ...

    def list(self) -> list[Key]: ...

    def revoke(self, key_id: int, now: int) -> bool: ...


class Spending(Protocol):
    def add(self, day: str, operation: str, cost: Spend) -> None:
        """Adds to the row of this day, operation and model."""
        ...

    def since(self, day: str) -> list[Spent]:
        """From this day on, newest day first, then by operation and model."""
        ...

    def total(self, day: str) -> Spend:
        """The sum over all operations and models."""
        ...
