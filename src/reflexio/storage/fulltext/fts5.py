"""The terms of rows in SQLite: a clustered table to read a user's rows from, an FTS5 table to find rows by.

In the FTS5 table each token has a prefix for its organisation and kind, so that the list of a token is that of one
scope: looking up token and scope separately costs twice the time. A column names the user, for users with very many
rows.

FTS5's bm25() is not used: it counts the rows of every organisation for each query (20 ms for one user among a
million rows, seconds for all) and lets one organisation's rows change the ranking of another's.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from json import dumps
from typing import Any

from sqlalchemy import Connection

from reflexio.storage.compiled import driver_connection
from reflexio.storage.fulltext.tables import Ids, TermEntry, parse_ids, size_changes
from reflexio.storage.fulltext.terms import ROW_END, ScopeSize, TermCounts, TermScope, token

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
_OLDEST_WITH = (
    "SELECT group_concat(rowid) FROM (SELECT rowid FROM {words}_fts WHERE {words}_fts MATCH ? ORDER BY rowid LIMIT ?)"
)
_NEWEST_WITH = _OLDEST_WITH.replace("BY rowid", "BY rowid DESC")
_ALL_WITH = "SELECT group_concat(rowid) FROM {words}_fts WHERE {words}_fts MATCH ?"
_SPAN = "SELECT (SELECT min(id) FROM {words} WHERE scope = ?), (SELECT max(id) FROM {words} WHERE scope = ?)"
_SPAN_OF_USER = _SPAN.replace("scope", "user_scope")


@dataclass(frozen=True, slots=True)
class Fts5Tables:
    """The tables of one entity within one transaction."""

    tx: Connection
    entity: str

    def create(self) -> None:
        for statement in _TABLES:
            self._write(statement)

    def insert(self, entries: Sequence[TermEntry]) -> None:
        rows = [(entry.user_scope, entry.id, entry.scope, entry.tokens) for entry in entries]
        self._write("INSERT INTO {words} VALUES (?, ?, ?, ?)", rows)
        fts_rows = [_fts_row(entry) for entry in entries]
        self._write("INSERT INTO {words}_fts (rowid, user, tokens) VALUES (?, ?, ?)", fts_rows)
        self._change_sizes(entries, 1)

    def delete(self, entries: Sequence[TermEntry]) -> None:
        # A contentless table deletes a row when it is given the row's content: the only way before SQLite 3.43.
        delete = "INSERT INTO {words}_fts ({words}_fts, rowid, user, tokens) VALUES ('delete', ?, ?, ?)"
        self._write(delete, [_fts_row(entry) for entry in entries])
        keys = [(entry.user_scope, entry.id) for entry in entries]
        self._write("DELETE FROM {words} WHERE user_scope = ? AND id = ?", keys)
        self._change_sizes(entries, -1)

    def entries(self, ids: Collection[int]) -> list[TermEntry]:
        query = "SELECT user_scope, id, scope, tokens FROM {words} WHERE id IN (SELECT value FROM json_each(?))"
        return [TermEntry("", *row) for row in self._read(query, (dumps([int(row_id) for row_id in ids]),))]

    def size(self, scope: TermScope) -> ScopeSize:
        query = "SELECT row_count, word_count FROM {words}_size WHERE scope = ?"
        row = self._read(query, (scope.narrowest,)).fetchone()
        return ScopeSize(*row) if row else ScopeSize(0, 0)

    def of_scope(self, scope: TermScope, terms: Sequence[str]) -> tuple[Ids, TermCounts]:
        """All rows of a scope and how often the terms occur in each."""
        return self._counts(_OF_EVERYONE if scope.user is None else _OF_USER, (scope.narrowest,), terms)

    def among(self, ids: Ids, scope: TermScope, terms: Sequence[str]) -> tuple[Ids, TermCounts]:
        """The same for those of some rows that are in a scope."""
        return self._counts(_AMONG, (dumps(ids.tolist()), scope.narrowest), terms)

    def all_with(self, term: str, scope: TermScope) -> Ids:
        """All rows with a term, in half the time that a list with a limit takes."""
        return self._ids(_ALL_WITH, term, scope)

    def oldest_with(self, term: str, scope: TermScope, limit: int) -> Ids:
        """Rows with a term, oldest first."""
        return self._ids(_OLDEST_WITH, term, scope, limit)

    def newest_with(self, term: str, scope: TermScope, limit: int) -> Ids:
        """Rows with a term, newest first."""
        return self._ids(_NEWEST_WITH, term, scope, limit)

    def span(self, scope: TermScope) -> tuple[int, int]:
        """The smallest and the largest id of a scope that has rows."""
        ((first, last),) = self._read(_SPAN if scope.user is None else _SPAN_OF_USER, (scope.narrowest,) * 2)
        return int(first), int(last)

    def _counts(self, statement: str, values: tuple[str, ...], terms: Sequence[str]) -> tuple[Ids, TermCounts]:
        # One string for all rows: a thousand small ones would cost more than the counting.
        ((ids, tokens),) = self._read(statement, values)
        return parse_ids(ids), TermCounts.of(tokens or "", terms)

    def _ids(self, statement: str, term: str, scope: TermScope, *limit: int) -> Ids:
        match = f"tokens : {_prefix(scope.everyone)}{token(term)}"
        ((ids,),) = self._read(statement, (f"user : {scope.user} AND {match}" if scope.user else match, *limit))
        return parse_ids(ids)

    def _change_sizes(self, entries: Sequence[TermEntry], sign: int) -> None:
        changes = [change[1:] for change in size_changes(entries, sign)]
        self._write(
            "INSERT INTO {words}_size VALUES (?, ?, ?) ON CONFLICT (scope) DO UPDATE SET"
            " row_count = row_count + excluded.row_count, word_count = word_count + excluded.word_count",
            changes,
        )
        if sign < 0:
            # A digest can be guessed: an empty scope would tell that a user was here.
            scopes = [change[:1] for change in changes]
            self._write("DELETE FROM {words}_size WHERE scope = ? AND row_count <= 0", scopes)

    def _write(self, statement: str, values: Any = ()) -> None:
        self.tx.exec_driver_sql(self._name_tables(statement), values)

    def _read(self, statement: str, values: Any) -> Any:
        return driver_connection(self.tx).execute(self._name_tables(statement), values)

    def _name_tables(self, statement: str) -> str:
        return statement.format(words=f"{self.entity}_words", end=ROW_END)


def _fts_row(entry: TermEntry) -> tuple[int, str, str]:
    prefix = _prefix(entry.scope)
    prefixed = prefix + entry.tokens.rstrip().replace(" ", f" {prefix}") if entry.tokens else ""
    return entry.id, entry.user_scope, prefixed


def _prefix(scope: str) -> str:
    """Enough of the digest that two scopes never share it; matches are read from rows of the scope alone."""
    return scope[:11]
