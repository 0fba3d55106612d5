"""All areas together: a transaction, the store of one organisation, the database of all."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from reflexio.ports.storage.documents import Configs, Keys, Receipts, Spending, Stalls
from reflexio.ports.storage.finding import Vectors
from reflexio.ports.storage.learnings import Learnings, Windows
from reflexio.ports.storage.operations import Operations
from reflexio.ports.storage.optimisations import Optimisations
from reflexio.ports.storage.pools import Pool, Pools
from reflexio.ports.storage.turns import Interactions, Requests, Users, Waiting
from reflexio.ports.work import Journal

T = TypeVar("T")


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

    @property
    def journal(self) -> Journal:
        """What durable work is under way, for the engine alone."""
        ...

    async def read_keys(self, fn: Callable[[Keys], T]) -> T: ...

    async def write_keys(self, fn: Callable[[Keys], T]) -> T: ...

    async def read_vectors(self, fn: Callable[[Vectors], T]) -> T: ...

    async def write_vectors(self, fn: Callable[[Vectors], T]) -> T: ...

    async def warm(self, model: str) -> None:
        """Reads the vectors of this model into memory, so that the first search need not."""
        ...

    async def backlog(self, limit: int, *, after: Waiting | None = None) -> list[Waiting]:
        """Users of all organisations who wait to be learned from, longest first; those that come after one of them."""
        ...

    async def pools(self, limit: int, *, after: Pool | None = None) -> list[Pool]:
        """Pools of all organisations in which something is new or to be tried again, in the order of their names."""
        ...

    async def configured(self) -> list[str]:
        """Organisations that have stored a configuration."""
        ...

    async def forget_receipts(self, before: int) -> int:
        """Of all organisations; nobody repeats a call that late."""
        ...

    async def ping(self) -> None: ...

    async def close(self) -> None: ...
