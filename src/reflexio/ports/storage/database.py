"""A transaction, the store of one organisation, and the database of all."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from reflexio.ports.storage.changes import Changes
from reflexio.ports.storage.documents import Configs, Keys, Operations, Receipts, Spending, Stalls
from reflexio.ports.storage.erasures import Erasures
from reflexio.ports.storage.exposures import Exposures
from reflexio.ports.storage.index import Vectors
from reflexio.ports.storage.interactions import Interactions, Requests, Users
from reflexio.ports.storage.learnings import Learnings, Windows
from reflexio.ports.storage.optimisations import Optimisations
from reflexio.ports.storage.pools import Pool, Pools
from reflexio.ports.storage.sessions import Sessions
from reflexio.ports.storage.transfers import Transfers
from reflexio.ports.work import Journal

T = TypeVar("T")


class Tx(Protocol):
    """One transaction of one organisation: no statement reaches beyond it."""

    @property
    def requests(self) -> Requests: ...
    @property
    def interactions(self) -> Interactions: ...
    @property
    def sessions(self) -> Sessions: ...
    @property
    def users(self) -> Users: ...
    @property
    def learnings(self) -> Learnings: ...
    @property
    def exposures(self) -> Exposures: ...
    @property
    def windows(self) -> Windows: ...
    @property
    def pools(self) -> Pools: ...
    @property
    def receipts(self) -> Receipts: ...
    @property
    def configs(self) -> Configs: ...
    @property
    def stalls(self) -> Stalls: ...
    @property
    def operations(self) -> Operations: ...
    @property
    def spending(self) -> Spending: ...
    @property
    def optimisations(self) -> Optimisations: ...
    @property
    def erasures(self) -> Erasures: ...
    @property
    def transfers(self) -> Transfers: ...


class Store(Protocol):
    """The rows of one organisation."""

    @property
    def org_id(self) -> str: ...

    async def read(self, fn: Callable[[Tx], T]) -> T: ...

    async def write(self, fn: Callable[[Tx], T]) -> T: ...


class Database(Protocol):
    """All organisations. `StorageUnavailable` and its subclasses say what the operator must do."""

    @property
    def type(self) -> str: ...

    @property
    def label(self) -> str: ...

    def of(self, org_id: str) -> Store: ...

    @property
    def changes(self) -> Changes:
        """When somebody has written, in this process or another: background work looks then."""

    @property
    def journal(self) -> Journal:
        """The journal of durable work, for the engine alone."""

    async def read_keys(self, fn: Callable[[Keys], T]) -> T: ...

    async def write_keys(self, fn: Callable[[Keys], T]) -> T: ...

    async def read_vectors(self, fn: Callable[[Vectors], T]) -> T: ...

    async def write_vectors(self, fn: Callable[[Vectors], T]) -> T: ...

    async def warm(self, model: str) -> None:
        """Loads the vectors of this model into memory before the first search."""

    async def waiting_organisations(self, limit: int, *, after: str = "") -> list[str]:
        """Organisations with unlearned turns by name, those behind `after` first and then the others."""

    async def pools(self, limit: int, *, after: Pool | None = None) -> list[Pool]:
        """Pools of all organisations with new playbooks or a retry, ordered by name."""

    async def configured(self) -> list[str]:
        """Organisations that have stored a configuration."""

    async def forget_receipts(self, before: int) -> int:
        """Removes old receipts of all organisations, a few in each transaction."""

    async def forget_profiles(self, expired_before: int) -> int:
        """Removes profiles of all organisations that expired before that time, a few in each transaction."""

    async def forget_orphans(self, before: int) -> int:
        """Removes the lineage of deleted learnings, and windows from before that time of users without turns."""

    async def forget_learned(self, before: int) -> int:
        """Removes windows from before that time that were learned, and paid steps of windows that never were."""

    async def forget_spend(self, before: str) -> int:
        """Removes what models cost on days before that date."""

    async def forget_dropped_vectors(self, seen: int) -> int:
        """Removes the marks of deleted vectors up to the number `seen`; returns the newest number, for the next time.

        Copies of the vectors in memory must have read on since.
        """

    async def erasing_organisations(self, limit: int) -> list[str]:
        """Organisations with erasures that have begun and not ended."""

    async def wipe(self) -> bool:
        """Removes the former content of deleted rows from disk, as far as nobody reads it; False to try again later.

        Never blocks writers for long.
        """

    async def problems(self) -> list[str]:
        """What is damaged or contradicts itself, in words. Reads everything; empty in a sound database."""

    async def ping(self) -> None: ...

    async def close(self) -> None: ...
