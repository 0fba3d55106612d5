"""Where the terms of rows are stored: what every database offers, and which of them a transaction uses."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from reflexio.storage.fulltext.terms import ScopeSize, TermCounts, TermScope

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TermEntry:
    """An indexed row: whose it is, and its terms as tokens."""

    org: str
    user_scope: str
    id: int
    scope: str
    tokens: str


class TermTables(Protocol):
    """The terms of one entity's rows within one transaction."""

    def create(self) -> None:
        """Creates the tables that are missing."""

    def insert(self, entries: Sequence[TermEntry]) -> None: ...

    def delete(self, entries: Sequence[TermEntry]) -> None: ...

    def entries(self, ids: Collection[int]) -> list[TermEntry]:
        """What is stored of some rows, as far as they are indexed."""

    def size(self, scope: TermScope) -> ScopeSize: ...

    def of_scope(self, scope: TermScope, terms: Sequence[str]) -> tuple[Ids, TermCounts]:
        """All rows of a scope and how often the terms occur in each."""

    def among(self, ids: Ids, scope: TermScope, terms: Sequence[str]) -> tuple[Ids, TermCounts]:
        """The same for those of some rows that are in a scope."""

    def all_with(self, term: str, scope: TermScope) -> Ids:
        """All rows with a term."""

    def oldest_with(self, term: str, scope: TermScope, limit: int) -> Ids:
        """Rows with a term, oldest first."""

    def newest_with(self, term: str, scope: TermScope, limit: int) -> Ids:
        """Rows with a term, newest first."""

    def span(self, scope: TermScope) -> tuple[int, int]:
        """The smallest and the largest id of a scope that has rows."""


def term_tables(tx: Connection, entity: str) -> TermTables:
    """The tables of the database in use. Only its module is imported, to keep the start fast."""
    if tx.dialect.name == "postgresql":
        from reflexio.storage.fulltext.postings import PostingTables

        return PostingTables(tx, entity)
    from reflexio.storage.fulltext.fts5 import Fts5Tables

    return Fts5Tables(tx, entity)


def size_changes(entries: Sequence[TermEntry], sign: int) -> list[tuple[str, str, int, int]]:
    """Organisation, scope, rows and words to add to the sizes of scopes, in one order for all: no writers deadlock."""
    changes: dict[tuple[str, str], tuple[int, int]] = {}
    for entry in entries:
        for scope in {entry.user_scope, entry.scope}:
            rows, words = changes.get((entry.org, scope), (0, 0))
            changes[entry.org, scope] = rows + sign, words + sign * entry.tokens.count(" ")
    return [(*key, *counts) for key, counts in sorted(changes.items())]


def parse_ids(ids: str | None) -> Ids:
    return np.fromstring(ids, np.int64, sep=",") if ids else np.empty(0, np.int64)
