"""Rows by their words, scored with statistics of the searched rows alone.

Few rows, as one user has, are read and scored outright. Among many, the rarer words of the query name the
candidates, and those are scored in the same way. What differs between databases is left to their tables.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection

from reflexio.storage.search.function_words import emphasis
from reflexio.storage.search.many import Best, Keep, Scores, look_up
from reflexio.storage.search.relevance import Counted, coverage, information, relevance
from reflexio.storage.search.scope import Scope
from reflexio.storage.search.sqlite import Entry, Ids, WordTables
from reflexio.storage.search.terms import query_terms, written

Few = Callable[[], Sequence[int] | None]

# Rows that are read and scored outright, some 2 µs each; FTS5 would seek about 10 µs for each row and word.
SCANNED = 5_000


@dataclass(frozen=True, slots=True)
class Row:
    """A row to be found by the words of its text."""

    id: int
    scope: Scope
    text: str


@dataclass(frozen=True, slots=True)
class Matches:
    """Row ids and scores, best first, equals by age.

    `coverage` says, from 0 to 1, how much of what the query tells each row holds: rare words tell more.
    `spread` is that of the scores of all rows searched; among many, an estimate from how rare the words are.
    """

    ids: Ids
    scores: Scores
    coverage: Scores
    spread: float = 0.0

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class Words:
    """The words of one entity's rows. Every verb is a function of the caller's transaction."""

    entity: str

    def create(self, tx: Connection) -> None:
        """Make the tables, where they are not there yet."""
        WordTables(tx, self.entity).create()

    def put(self, tx: Connection, rows: Sequence[Row]) -> None:
        """Index rows; one that is there already is replaced."""
        latest = {row.id: row for row in rows}
        self.drop(tx, latest)
        if latest:
            WordTables(tx, self.entity).insert([_entry(row) for row in latest.values()])

    def drop(self, tx: Connection, ids: Collection[int]) -> None:
        """Take rows out of the index; unknown ids are passed over."""
        tables = WordTables(tx, self.entity)
        if entries := tables.entries(ids):
            tables.delete(entries)

    def match(
        self,
        tx: Connection,
        scope: Scope,
        query: str,
        limit: int,
        keep: Keep = frozenset,
        few: Few = lambda: None,
        *,
        is_narrow: bool = False,
    ) -> Matches:
        """The best rows by words.

        `keep` says which of some ids pass the caller's filters. It is asked about the best first and about
        more until `limit` rows are found, so that a filter never shortens the answer. `few` names all rows that
        pass when they are few: rows that nobody may see must not count in the statistics. Among very many rows
        it is asked only of a narrow filter, and those rows are then read outright, because others would use up the
        candidates.
        """
        tables = WordTables(tx, self.entity)
        size = tables.size(scope.narrowest)
        if limit <= 0 or not size.rows or not (wanted := query_terms(query)):
            return _NOTHING
        best = Best(limit, keep)
        if size.rows <= SCANNED:
            return _outright(*_scanned(tables, scope, wanted, few()), wanted, best)
        if is_narrow and (named := few()) is not None:
            ids = np.asarray(named, np.int64)
            return _outright(*tables.among(ids, scope.narrowest, wanted), wanted, best)
        return _matches(best, look_up(tables, scope, wanted, size, best))


_NOTHING = Matches(np.empty(0, np.int64), np.empty(0), np.empty(0))


def _scanned(tables: WordTables, scope: Scope, wanted: list[str], few: Sequence[int] | None) -> tuple[Ids, Counted]:
    read = tables.of_everyone if scope.user is None else tables.of_user
    ids, counted = read(scope.narrowest, wanted)
    if few is None or len(few) >= len(ids):
        return ids, counted
    passing = np.isin(ids, few, assume_unique=True)
    return ids[passing], counted.of_rows(passing)


def _outright(ids: Ids, counted: Counted, wanted: list[str], best: Best) -> Matches:
    """Rows that are all there are: how far apart their scores lie is known."""
    size = counted.size
    weights = information(counted.rows_with, size.rows) * emphasis(wanted)
    scores = relevance(counted, weights, size.mean_length)
    best.take(ids, scores, coverage(counted, weights))
    return _matches(best, float(scores.std()) if len(scores) else 0.0)


def _matches(best: Best, spread: float) -> Matches:
    return Matches(best.ids, best.scores, best.coverage, spread)


def _entry(row: Row) -> Entry:
    return Entry(row.scope.narrowest, row.id, row.scope.everyone, written(row.text))
