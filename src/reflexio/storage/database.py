"""What the databases share: stores, and the verbs that concern all organisations, as functions of a connection.

A subclass says how a function is run in a transaction. Everything here is the same on every database.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from sqlalchemy import ColumnElement, Connection, Table, func, select, text, true

from reflexio.ports.storage import Changes, Keys, Pool, Tx, Vectors
from reflexio.storage.fulltext.prepared import PreparedTerms, TermsMissing, terms_of
from reflexio.storage.integrity import broken_invariants
from reflexio.storage.queries import organisations_with
from reflexio.storage.schema import finished_steps, spend, unfinished_erasures, vectors, windows
from reflexio.storage.tables import tidying
from reflexio.storage.tables.documents import SqlKeys, configured_organisations
from reflexio.storage.tables.embeddings import SqlVectors
from reflexio.storage.tables.interactions import waiting_organisations
from reflexio.storage.tables.journal import SqlJournal
from reflexio.storage.tables.pools import changed_pools
from reflexio.storage.transaction import SqlTx
from reflexio.storage.vectors.search import VectorSearch

T = TypeVar("T")
TIDIED_AT_ONCE = 200
"""Rows that are removed in one write when tables are tidied."""


class SqlDatabase(ABC):
    """Every organisation in one database."""

    type: str
    changes: Changes

    def __init__(self, label: str, max_daily_tokens: int | None = None) -> None:
        self.label = label
        self.max_daily_tokens = max_daily_tokens
        self.journal = SqlJournal(self)

    @abstractmethod
    async def read(self, fn: Callable[[Connection], T], *, org_id: str | None = None) -> T:
        """Runs `fn` in a transaction that sees one moment; of all organisations when none is named."""

    @abstractmethod
    async def write(self, fn: Callable[[Connection], T], *, org_id: str | None = None) -> T:
        """Runs `fn` in a transaction that is durable when this returns."""

    @abstractmethod
    def vectors(self, connection: Connection) -> VectorSearch:
        """What searches by vectors in this transaction."""

    @abstractmethod
    async def warm(self, model: str) -> None: ...

    @abstractmethod
    async def wipe(self) -> bool: ...

    @abstractmethod
    async def close(self) -> None: ...

    def of(self, org_id: str) -> "SqlStore":
        return SqlStore(self, org_id)

    async def read_keys(self, fn: Callable[[Keys], T]) -> T:
        return await self.read(lambda connection: fn(SqlKeys(connection)))

    async def write_keys(self, fn: Callable[[Keys], T]) -> T:
        return await self.write(lambda connection: fn(SqlKeys(connection)))

    async def read_vectors(self, fn: Callable[[Vectors], T]) -> T:
        return await self.read(lambda connection: fn(SqlVectors(connection)))

    async def write_vectors(self, fn: Callable[[Vectors], T]) -> T:
        return await self.write(lambda connection: fn(SqlVectors(connection)))

    async def waiting_organisations(self, limit: int, *, after: str = "") -> list[str]:
        return await self.read(lambda connection: waiting_organisations(connection, limit, after))

    async def pools(self, limit: int, *, after: Pool | None = None) -> list[Pool]:
        return await self.read(lambda connection: changed_pools(connection, limit, after))

    async def configured(self) -> list[str]:
        return await self.read(configured_organisations)

    async def forget_receipts(self, before: int) -> int:
        return await self._in_batches(
            lambda connection: tidying.old_receipts(connection, before, TIDIED_AT_ONCE), tidying.remove_receipts
        )

    async def forget_profiles(self, expired_before: int) -> int:
        return await self._in_batches(
            lambda connection: tidying.expired_profiles(connection, expired_before, TIDIED_AT_ONCE),
            lambda connection, rows: tidying.remove_profiles(
                connection, rows, self.vectors(connection), expired_before
            ),
        )

    async def forget_orphans(self, before: int) -> int:
        events = await self._in_batches(
            lambda connection: tidying.orphaned_lineage(connection, TIDIED_AT_ONCE), tidying.remove_lineage
        )
        return events + await self._in_batches(
            lambda connection: tidying.orphaned_windows(connection, before, TIDIED_AT_ONCE), tidying.remove_windows
        )

    async def forget_learned(self, before: int) -> int:
        return await self._forget(windows, tidying.learned_windows(before)) + await self._forget(
            finished_steps, tidying.forgotten_steps(before)
        )

    async def forget_spend(self, before: str) -> int:
        return await self._forget(spend, spend.c.day < before)

    async def forget_dropped_vectors(self, seen: int) -> int:
        if seen:
            await self._forget(vectors, tidying.dropped_vectors(seen))
        newest = select(func.max(vectors.c.seq))
        return await self.read(lambda connection: int(connection.execute(newest).scalar() or 0))

    async def _forget(self, table: Table, which: ColumnElement[bool]) -> int:
        return await self._in_batches(
            lambda connection: tidying.old_keys(connection, table, which, TIDIED_AT_ONCE),
            lambda connection, keys: tidying.remove_keys(connection, table, which, keys),
        )

    async def erasing_organisations(self, limit: int) -> list[str]:
        rows = unfinished_erasures.c
        return await self.read(lambda connection: organisations_with(connection, rows.org_id, true(), limit))

    async def _in_batches(
        self, find: Callable[[Connection], list[T]], remove: Callable[[Connection, list[T]], int]
    ) -> int:
        """Removes what `find` returns, batch after batch: other writes are made between two of them."""
        total = 0
        while rows := await self.read(find):
            batch = rows
            removed = await self.write(lambda connection, batch=batch: remove(connection, batch))  # type: ignore[misc]
            total += removed
            if not removed or len(batch) < TIDIED_AT_ONCE:
                break
        return total

    async def problems(self) -> list[str]:
        return await self.read(broken_invariants)

    async def ping(self) -> None:
        await self.read(lambda connection: connection.execute(text("SELECT 1")))


class SqlStore:
    """The rows of one organisation."""

    def __init__(self, database: SqlDatabase, org_id: str) -> None:
        self._database = database
        self.org_id = org_id

    async def read(self, fn: Callable[[Tx], T]) -> T:
        return await self._database.read(lambda connection: fn(self._tx(connection)), org_id=self.org_id)

    async def write(self, fn: Callable[[Tx], T]) -> T:
        known: dict[str, str] = {}
        while True:
            try:
                return await self._database.write(partial(self._write, fn, known), org_id=self.org_id)
            except TermsMissing as missing:
                known |= await asyncio.to_thread(terms_of, missing.texts)

    def _write(self, fn: Callable[[Tx], T], known: dict[str, str], connection: Connection) -> T:
        """Raises TermsMissing, which undoes what was written, when long texts are to be indexed."""
        terms = PreparedTerms(known)
        result = fn(self._tx(connection, terms))
        terms.check()
        return result

    def _tx(self, connection: Connection, terms: PreparedTerms | None = None) -> SqlTx:
        vectors = self._database.vectors(connection)
        return SqlTx(connection, self.org_id, vectors, self._database.max_daily_tokens, terms)
