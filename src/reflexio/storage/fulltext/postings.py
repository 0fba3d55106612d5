"""The terms of rows in PostgreSQL: a table to read rows from, and postings to find rows by.

A posting is a 64-bit number for scope and term together, and the row: an index of them alone answers which rows have a
term. PostgreSQL's own full text was ten times slower and ranks by other statistics. Sizes of scopes are spread over
some rows each, so that writers of one organisation seldom change the same one.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from sqlalchemy import Connection

from reflexio.storage.compiled import driver_connection
from reflexio.storage.fulltext.tables import Ids, TermEntry, parse_ids, size_changes
from reflexio.storage.fulltext.terms import ROW_END, ScopeSize, TermCounts, TermScope, token

_TABLES = (
    'CREATE TABLE IF NOT EXISTS {words} (org_id text NOT NULL, user_scope text COLLATE "C" NOT NULL,'
    ' id bigint NOT NULL, scope text COLLATE "C" NOT NULL, tokens text COLLATE "C" NOT NULL,'
    " PRIMARY KEY (org_id, user_scope, id))",
    "CREATE INDEX IF NOT EXISTS {words}_id ON {words} (id)",
    "CREATE INDEX IF NOT EXISTS {words}_scope ON {words} (org_id, scope, id)",
    'CREATE TABLE IF NOT EXISTS {words}_size (org_id text NOT NULL, scope text COLLATE "C" NOT NULL,'
    " shard smallint NOT NULL, row_count bigint NOT NULL, word_count bigint NOT NULL,"
    " PRIMARY KEY (org_id, scope, shard))",
    "CREATE TABLE IF NOT EXISTS {words}_postings (org_id text NOT NULL, term bigint NOT NULL, id bigint NOT NULL,"
    " PRIMARY KEY (org_id, term, id))",
)
_READ = "SELECT string_agg(id::text, ','), string_agg(tokens || '{end}', '') FROM {words} WHERE org_id = %s"
_OF_USER = _READ + " AND user_scope = %s"
_OF_EVERYONE = _READ + " AND scope = %s"
_AMONG = _READ + " AND id = ANY(%s) AND %s IN (scope, user_scope)"
_WITH = (
    "SELECT string_agg(id::text, ',') FROM (SELECT id FROM {words}_postings p WHERE org_id = %s AND term = %s{of_user}"
    " ORDER BY id {order} LIMIT %s) AS with_term"
)
_OF_ONE = " AND EXISTS (SELECT FROM {words} w WHERE w.org_id = p.org_id AND w.user_scope = %s AND w.id = p.id)"
_SPAN = "SELECT min(id), max(id) FROM {words} WHERE org_id = %s AND {column} = %s"


_ADD_SIZES = (
    "INSERT INTO {words}_size AS size VALUES (%s, %s, mod(pg_backend_pid(), 8), %s, %s)"
    " ON CONFLICT (org_id, scope, shard) DO UPDATE SET row_count = size.row_count + excluded.row_count,"
    " word_count = size.word_count + excluded.word_count"
)


@dataclass(frozen=True, slots=True)
class PostingTables:
    """The tables of one entity within one transaction."""

    tx: Connection
    entity: str

    def create(self) -> None:
        for statement in _TABLES:
            self.tx.exec_driver_sql(self._name_tables(statement))

    def insert(self, entries: Sequence[TermEntry]) -> None:
        rows = [(entry.org, entry.user_scope, entry.id, entry.scope, entry.tokens) for entry in entries]
        self._write_all("INSERT INTO {words} VALUES (%s, %s, %s, %s, %s)", rows)
        postings = [
            (entry.org, term, entry.id) for entry in entries for term in _posting_terms(entry.scope, entry.tokens)
        ]
        orgs, terms, ids = (list(column) for column in zip(*postings, strict=True)) if postings else ([], [], [])
        self._run(
            "INSERT INTO {words}_postings SELECT * FROM unnest(%s::text[], %s::bigint[], %s::bigint[])"
            " ON CONFLICT DO NOTHING",
            (orgs, terms, ids),
        )
        self._change_sizes(entries, 1)

    def delete(self, entries: Sequence[TermEntry]) -> None:
        for entry in entries:
            terms = _posting_terms(entry.scope, entry.tokens)
            values = entry.org, terms, entry.id
            self._run("DELETE FROM {words}_postings WHERE org_id = %s AND term = ANY(%s) AND id = %s", values)
        keys = [(entry.org, entry.user_scope, entry.id) for entry in entries]
        self._write_all("DELETE FROM {words} WHERE org_id = %s AND user_scope = %s AND id = %s", keys)
        self._change_sizes(entries, -1)

    def entries(self, ids: Collection[int]) -> list[TermEntry]:
        query = "SELECT org_id, user_scope, id, scope, tokens FROM {words} WHERE id = ANY(%s)"
        return [TermEntry(*row) for row in self._rows(query, ([int(row_id) for row_id in ids],))]

    def size(self, scope: TermScope) -> ScopeSize:
        query = (
            "SELECT coalesce(sum(row_count), 0)::bigint, coalesce(sum(word_count), 0)::bigint FROM {words}_size"
            " WHERE org_id = %s AND scope = %s"
        )
        ((rows, words),) = self._rows(query, (scope.org, scope.narrowest))
        return ScopeSize(rows, words)

    def of_scope(self, scope: TermScope, terms: Sequence[str]) -> tuple[Ids, TermCounts]:
        statement = _OF_EVERYONE if scope.user is None else _OF_USER
        return self._counts(statement, (scope.org, scope.narrowest), terms)

    def among(self, ids: Ids, scope: TermScope, terms: Sequence[str]) -> tuple[Ids, TermCounts]:
        return self._counts(_AMONG, (scope.org, ids.tolist(), scope.narrowest), terms)

    def all_with(self, term: str, scope: TermScope) -> Ids:
        return self._with(term, scope, "ASC", None)

    def oldest_with(self, term: str, scope: TermScope, limit: int) -> Ids:
        return self._with(term, scope, "ASC", limit)

    def newest_with(self, term: str, scope: TermScope, limit: int) -> Ids:
        return self._with(term, scope, "DESC", limit)

    def span(self, scope: TermScope) -> tuple[int, int]:
        column = "scope" if scope.user is None else "user_scope"
        ((first, last),) = self._rows(_SPAN.replace("{column}", column), (scope.org, scope.narrowest))
        return int(first), int(last)

    def _counts(self, statement: str, values: tuple[Any, ...], terms: Sequence[str]) -> tuple[Ids, TermCounts]:
        ((ids, tokens),) = self._rows(statement, values)
        return parse_ids(ids), TermCounts.of(tokens or "", terms)

    def _with(self, term: str, scope: TermScope, order: str, limit: int | None) -> Ids:
        (number,) = _posting_terms(scope.everyone, token(term))
        statement = _WITH.replace("{order}", order).replace("{of_user}", _OF_ONE if scope.user else "")
        user = (scope.user,) if scope.user else ()
        ((ids,),) = self._rows(statement, (scope.org, number, *user, limit))
        return parse_ids(ids)

    def _change_sizes(self, entries: Sequence[TermEntry], sign: int) -> None:
        changes = size_changes(entries, sign)
        self._write_all(_ADD_SIZES, changes)
        if sign < 0:
            # A digest can be guessed: an empty scope would tell that a user was here.
            orgs, scopes = [change[0] for change in changes], [change[1] for change in changes]
            self._run(
                "DELETE FROM {words}_size WHERE (org_id, scope) IN (SELECT org_id, scope FROM {words}_size WHERE"
                " (org_id, scope) IN (SELECT * FROM unnest(%s::text[], %s::text[]))"
                " GROUP BY org_id, scope HAVING sum(row_count) <= 0)",
                (orgs, scopes),
            )

    def _write_all(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            with driver_connection(self.tx).cursor() as cursor:
                cursor.executemany(self._name_tables(statement), rows)

    def _run(self, statement: str, values: Any) -> None:
        driver_connection(self.tx).execute(self._name_tables(statement), values)

    def _rows(self, statement: str, values: Any) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = (
            driver_connection(self.tx).execute(self._name_tables(statement), values).fetchall()
        )
        return rows

    def _name_tables(self, statement: str) -> str:
        return statement.replace("{words}", f"{self.entity}_words").replace("{end}", ROW_END)


def _posting_terms(scope: str, tokens: str) -> list[int]:
    """A number for each different token of a row, together with its scope. Two share one in 2**64 pairs."""
    if not tokens:
        return []
    key = scope.encode()[:64]
    return sorted(
        int(np.int64(int.from_bytes(blake2b(word.encode(), digest_size=8, key=key).digest(), signed=True)))
        for word in set(tokens.split())
    )
