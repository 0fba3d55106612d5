"""The words of rows in SQLite: a clustered table to read a user's rows from, an FTS5 table to find rows by.

In the FTS5 table each word carries its org and kind in front, so that the list of a word is that of one scope: to
look up word and scope side by side costs twice the time. Users stand beside their rows, for those who have very many.

FTS5's bm25() is not used: it counts the rows of every tenant for each query (20 ms for one user among a
million rows, seconds for all) and lets one org's rows move the ranking of another's.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from json import dumps
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from reflexio.storage.hot import driver
from reflexio.storage.search.relevance import Counted, Size
from reflexio.storage.search.terms import ROW_END, numbers, token

Ids = NDArray[np.int64]

_TABLES = (
    "CREATE TABLE IF NOT EXISTS {words} (user_scope TEXT NOT NULL, id INTEGER NOT NULL, scope TEXT NOT NULL,"
    " tokens TEXT NOT NULL, PRIMARY KEY (user_scope, id)) WITHOUT ROWID",
    "CREATE UNIQUE INDEX IF NOT EXISTS {words}_id ON {words} (id)",
    "CREATE INDEX IF NOT EXISTS {words}_scope ON {words} (scope, id)",
    "CREATE TABLE IF NOT EXISTS {words}_size (scope TEXT PRIMARY KEY, row_count INTEGER NOT NULL,"
    " word_count INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE VIRTUAL TABLE IF NOT EXISTS {words}_fts"
    " USING fts5(user, tokens, content='', detail=column, tokenize='ascii')",
)
_READ = "SELECT group_concat(id), group_concat(tokens || '{end}', '') FROM {words}"
_OF_USER = _READ + " WHERE user_scope = ?"
_OF_EVERYONE = _READ + " WHERE scope = ?"
_AMONG = _READ + " WHERE id IN (SELECT value FROM json_each(?)) AND ? IN (scope, user_scope)"  # noqa: S608 (nothing of a caller is in it)
_HOLDING = (
    "SELECT group_concat(rowid) FROM (SELECT rowid FROM {words}_fts WHERE {words}_fts MATCH ? ORDER BY rowid LIMIT ?)"
)
_ALL_HOLDING = "SELECT group_concat(rowid) FROM {words}_fts WHERE {words}_fts MATCH ?"
_ENDS_OF_SCOPE = "SELECT (SELECT min(id) FROM {words} WHERE scope = ?), (SELECT max(id) FROM {words} WHERE scope = ?)"
_ENDS_OF_USER = _ENDS_OF_SCOPE.replace("scope", "user_scope")
_HOLDING_NEWEST = _HOLDING.replace("BY rowid", "BY rowid DESC")


@dataclass(frozen=True, slots=True)
class Entry:
    """A row as it is indexed: whose it is and its words, written as tokens."""

    user_scope: str
    id: int
    scope: str
    tokens: str

    @property
    def listed(self) -> tuple[int, str, str]:
        own = _prefix(self.scope)
        return self.id, self.user_scope, own + self.tokens.rstrip().replace(" ", f" {own}") if self.tokens else ""


@dataclass(frozen=True, slots=True)
class WordTables:
    """The tables of one entity within one transaction."""

    tx: Connection
    entity: str

    def create(self) -> None:
        for statement in _TABLES:
            self._run(statement)

    def insert(self, entries: Sequence[Entry]) -> None:
        self._run(
            "INSERT INTO {words} VALUES (?, ?, ?, ?)",
            [(e.user_scope, e.id, e.scope, e.tokens) for e in entries],
        )
        self._run("INSERT INTO {words}_fts (rowid, user, tokens) VALUES (?, ?, ?)", [e.listed for e in entries])
        self._count(entries, 1)

    def delete(self, entries: Sequence[Entry]) -> None:
        # A contentless table forgets a row by being told what was in it: the only way before SQLite 3.43.
        self._run(
            "INSERT INTO {words}_fts ({words}_fts, rowid, user, tokens) VALUES ('delete', ?, ?, ?)",
            [e.listed for e in entries],
        )
        self._run("DELETE FROM {words} WHERE user_scope = ? AND id = ?", [(e.user_scope, e.id) for e in entries])
        self._count(entries, -1)

    def entries(self, ids: Collection[int]) -> list[Entry]:
        found = self._look(
            "SELECT user_scope, id, scope, tokens FROM {words} WHERE id IN (SELECT value FROM json_each(?))",
            (_json(ids),),
        )
        return [Entry(*entry) for entry in found]

    def size(self, scope: str) -> Size:
        found = self._look("SELECT row_count, word_count FROM {words}_size WHERE scope = ?", (scope,)).fetchone()
        return Size(*found) if found else Size(0, 0)

    def of_user(self, user_scope: str, wanted: Sequence[str]) -> tuple[Ids, Counted]:
        """All rows of a user and how often the wanted terms stand in each."""
        return self._counted(_OF_USER, (user_scope,), wanted)

    def of_everyone(self, scope: str, wanted: Sequence[str]) -> tuple[Ids, Counted]:
        """The same for all rows of a scope."""
        return self._counted(_OF_EVERYONE, (scope,), wanted)

    def among(self, ids: Ids, scope: str, wanted: Sequence[str]) -> tuple[Ids, Counted]:
        """The same for those of some rows that are of a scope, of either kind."""
        return self._counted(_AMONG, (_json(ids.tolist()), scope), wanted)

    def all_holding(self, term: str, scope: str, user: str | None) -> Ids:
        """All rows that hold a term, in half the time that the database takes to cut a list off."""
        return self._ids(_ALL_HOLDING, term, scope, user)

    def holding(self, term: str, scope: str, user: str | None, most: int) -> Ids:
        """Rows that hold a term, oldest first."""
        return self._ids(_HOLDING, term, scope, user, most)

    def holding_newest(self, term: str, scope: str, user: str | None, most: int) -> Ids:
        """Rows that hold a term, newest first."""
        return self._ids(_HOLDING_NEWEST, term, scope, user, most)

    def span(self, scope: str, user: str | None) -> tuple[int, int]:
        """The smallest and the largest id of a scope that has rows."""
        ends = _ENDS_OF_SCOPE if user is None else _ENDS_OF_USER
        ((first, last),) = self._look(ends, (user or scope,) * 2)
        return int(first), int(last)

    def _counted(self, statement: str, values: tuple[str, ...], wanted: Sequence[str]) -> tuple[Ids, Counted]:
        # One string for all rows: a thousand small ones would cost more than all that is done with them.
        ((ids, tokens),) = self._look(statement, values)
        return _parsed(ids), Counted.of(tokens or "", numbers(wanted))

    def _ids(self, statement: str, term: str, scope: str, user: str | None, *most: int) -> Ids:
        wanted = f"tokens : {_prefix(scope)}{token(term)}"
        ((ids,),) = self._look(statement, (f"user : {user} AND {wanted}" if user else wanted, *most))
        return _parsed(ids)

    def _count(self, entries: Sequence[Entry], sign: int) -> None:
        change: dict[str, tuple[int, int]] = {}
        for entry in entries:
            for scope in {entry.user_scope, entry.scope}:
                rows, words = change.get(scope, (0, 0))
                change[scope] = rows + sign, words + sign * entry.tokens.count(" ")
        self._run(
            "INSERT INTO {words}_size VALUES (?, ?, ?) ON CONFLICT (scope) DO UPDATE SET"
            " row_count = row_count + excluded.row_count, word_count = word_count + excluded.word_count",
            [(scope, *counts) for scope, counts in change.items()],
        )

    def _run(self, statement: str, values: Any = ()) -> None:
        self.tx.exec_driver_sql(self._named(statement), values)

    def _look(self, statement: str, values: Any) -> Any:
        return driver(self.tx).execute(self._named(statement), values)

    def _named(self, statement: str) -> str:
        return statement.format(words=f"{self.entity}_words", end=ROW_END)


def _prefix(scope: str) -> str:
    """Enough of the digest that two scopes never share it; what is found is read from rows of the scope alone."""
    return scope[:11]


def _parsed(ids: str | None) -> Ids:
    return np.fromstring(ids, np.int64, sep=",") if ids else np.empty(0, np.int64)


def _json(ids: Collection[int]) -> str:
    return dumps([int(row) for row in ids])
