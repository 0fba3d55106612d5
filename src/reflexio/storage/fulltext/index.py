"""The rows that answer a query best by their words: BM25 with the statistics of the searched rows alone.

A scope with few rows, as one user has, is read and scored completely. Among many rows, the rarest terms of the query
name the candidates. More common terms are only followed as long as they could still decide which rows are among the
best. The candidates with most of the query are then read and scored. What is special to a database is in its tables.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from reflexio.ports.storage import Matched
from reflexio.storage.fulltext.tables import Ids, TermEntry, TermTables, term_tables
from reflexio.storage.fulltext.terms import FUNCTION_WORDS, ScopeSize, TermCounts, TermScope, query_terms, terms, tokens

Scores = NDArray[np.float64]
AllowedRows = Callable[[list[int]], Collection[int]]

# Robertson's usual values: how soon a repeated word stops counting, how much a long row is discounted.
SATURATION, LENGTH_DISCOUNT = 1.2, 0.75
# How much a function word counts. Measured on sixteen sets: .1 to .4 beats both 0 and 1 on most.
FUNCTION_WORD_WEIGHT = 0.2
# Rows that are read and scored completely, some 2 µs each; FTS5 would seek about 10 µs for each row and word.
SCANNED_ROWS = 5_000
# Terms taken from a query, the longest first: they are the rarer ones.
LOOKED_UP_TERMS = 24
# Rows with a term that are read at either end of the table to estimate how many there are.
PROBED_ROWS = 100
# Rows that all terms together may name, 0.1 µs each; beyond that the newest are named.
CANDIDATE_ROWS = 60_000
# A list so short that following it costs less than deciding whether it is needed.
SHORT_LIST = 2_000
# A share of the query so small that it decides nothing worth the time, such as its articles.
SMALL_SHARE = 0.3
# Candidates that are read and scored at first, some 8 µs each; three times as many with each further step.
RESCORED_ROWS = 300


def stored_terms(text: str) -> str:
    """The terms of a text as they are stored. Takes a second for a million letters: not to be done in a write."""
    return tokens(terms(text))


@dataclass(frozen=True, slots=True)
class FulltextRow:
    """A row to be found by the words of its text."""

    id: int
    scope: TermScope
    text: str


@dataclass(frozen=True, slots=True)
class FulltextIndex:
    """The words of one entity's rows. Every method is a function of the caller's transaction."""

    entity: str

    def create(self, tx: Connection) -> None:
        """Creates the tables that are missing."""
        term_tables(tx, self.entity).create()

    def put(self, tx: Connection, rows: Sequence[FulltextRow]) -> None:
        """Indexes rows; a row that is indexed already is replaced."""
        self.put_terms(tx, [(row.id, row.scope, stored_terms(row.text)) for row in rows])

    def put_terms(self, tx: Connection, rows: Sequence[tuple[int, TermScope, str]]) -> None:
        """The same for rows whose terms are made already."""
        latest = {
            row_id: TermEntry(scope.org, scope.narrowest, row_id, scope.everyone, terms)
            for row_id, scope, terms in rows
        }
        self.drop(tx, latest)
        if latest:
            term_tables(tx, self.entity).insert(list(latest.values()))

    def drop(self, tx: Connection, ids: Collection[int]) -> None:
        """Removes rows from the index; unknown ids are ignored."""
        tables = term_tables(tx, self.entity)
        if entries := tables.entries(ids):
            tables.delete(entries)

    def count(self, tx: Connection, scope: TermScope) -> int:
        """How many rows of a scope are indexed."""
        return term_tables(tx, self.entity).size(scope).rows

    def match(
        self,
        tx: Connection,
        scope: TermScope,
        query: str,
        limit: int,
        passing: AllowedRows = frozenset,
        list_passing: Callable[[], Sequence[int] | None] = lambda: None,
        *,
        is_narrow: bool = False,
    ) -> Matched:
        """The best rows by words; equals by age.

        `passing` returns those of some ids that pass the caller's filters. It is called with the best rows first and
        with more until `limit` rows are found, so that a filter never shortens the answer. `list_passing` lists all
        rows that pass when they are few: rows that the caller may not see must not count in the statistics. Among very
        many rows it is called only for a narrow filter, and those rows are then scored completely, because others would
        use up the candidates.
        """
        tables = term_tables(tx, self.entity)
        size = tables.size(scope)
        if limit <= 0 or not size.rows or not (words := query_terms(query)):
            return Matched()
        top = TopRows(limit, passing)
        if size.rows <= SCANNED_ROWS:
            ids, counts = tables.of_scope(scope, words)
            listed = list_passing()
            if listed is not None and len(listed) < len(ids):
                is_listed = np.isin(ids, listed, assume_unique=True)
                ids, counts = ids[is_listed], counts.of_rows(is_listed)
            spread = _score_all(ids, counts, words, top)
        elif is_narrow and (listed := list_passing()) is not None:
            spread = _score_all(*tables.among(np.asarray(listed, np.int64), scope, words), words, top)
        else:
            spread = _score_candidates(tables, scope, words, size, top)
        coverage = tuple(top.coverage.tolist())
        return Matched(tuple(top.ids.tolist()), tuple(top.scores.tolist()), coverage, spread=spread)


@dataclass
class TopRows:
    """The best rows that pass, as far as they are known: at most `limit`."""

    limit: int
    passing: AllowedRows
    ids: Ids = field(default_factory=lambda: np.empty(0, np.int64))
    scores: Scores = field(default_factory=lambda: np.empty(0))
    coverage: Scores = field(default_factory=lambda: np.empty(0))

    def add(self, ids: Ids, counts: TermCounts, weights: Scores, mean_length: float) -> Scores:
        """Scores rows and keeps the best. Returns the score of every row.

        A row of mean length with each term once scores the sum of the weights. Coverage is the share of that sum that
        the terms of a row have, from 0 to 1.
        """
        discount = SATURATION * (1 - LENGTH_DISCOUNT + LENGTH_DISCOUNT * counts.lengths / mean_length)
        scores: Scores = weights @ (counts.times * (SATURATION + 1) / (counts.times + discount))
        coverage = weights @ (counts.times > 0) / max(float(weights.sum()), 1e-9)
        places = self._passing_places(ids, np.lexsort((ids, -scores))[: np.count_nonzero(scores > 0)])
        all_ids = np.concatenate([self.ids, ids[places]])
        all_scores = np.concatenate([self.scores, scores[places]])
        best = np.lexsort((all_ids, -all_scores))[: self.limit]
        self.coverage = np.concatenate([self.coverage, coverage[places]])[best]
        self.ids, self.scores = all_ids[best], all_scores[best]
        return scores

    def _passing_places(self, ids: Ids, places: NDArray[np.int64]) -> list[int]:
        """Filters the best first, and more only until there are enough."""
        kept: list[int] = []
        at, step = 0, self.limit
        while at < len(places) and len(kept) < self.limit:
            batch = places[at : at + step].tolist()
            passing = self.passing(ids[batch].tolist())
            kept += [place for place in batch if int(ids[place]) in passing]
            at, step = at + step, step * 4
        return kept[: self.limit]


def _term_weights(query: Sequence[str], rows_with: Scores, rows: int) -> Scores:
    """How much each term tells about a row that has it, when `rows_with` of `rows` have it; never below zero."""
    emphasis = [FUNCTION_WORD_WEIGHT if term in FUNCTION_WORDS else 1.0 for term in query]
    return np.log1p((rows - rows_with + 0.5) / (rows_with + 0.5)) * np.array(emphasis, np.float64)


def _score_all(ids: Ids, counts: TermCounts, query: list[str], top: TopRows) -> float:
    """Scores all rows that there are. Returns the standard deviation of their scores."""
    size = counts.size
    scores = top.add(ids, counts, _term_weights(query, counts.rows_with, size.rows), size.mean_length)
    return float(scores.std()) if len(scores) else 0.0


def _score_candidates(tables: TermTables, scope: TermScope, query: list[str], size: ScopeSize, top: TopRows) -> float:
    """Scores the candidates among many rows. Returns an estimate of the standard deviation of all rows' scores: that of
    terms which fall into rows by chance."""
    query = sorted(query, key=lambda term: (term in FUNCTION_WORDS, -len(term)))[:LOOKED_UP_TERMS]
    first, last = tables.span(scope)
    rows_with = np.array([_estimate_rows_with(tables, term, scope, first, last, size.rows) for term in query])
    weights = _term_weights(query, rows_with, size.rows)
    table = ScoreTable(first, np.zeros(last - first + 1, np.float32))
    _add_candidates(table, tables, scope, query, rows_with, weights, top.limit)
    for batch in table.batches():
        top.add(*tables.among(batch, scope, query), weights, size.mean_length)
        if len(top.ids) >= top.limit:
            break
    share = rows_with / size.rows
    return float(np.sqrt((weights**2 * share * (1 - share)).sum()))


def _estimate_rows_with(tables: TermTables, term: str, scope: TermScope, first: int, last: int, rows: int) -> float:
    """About how many rows have a term: as dense as at that end of the scope where it is rarer.

    Both ends, because a term may be common among the rows of one import and nowhere else.
    """
    oldest = tables.oldest_with(term, scope, PROBED_ROWS)
    if len(oldest) < PROBED_ROWS:
        return float(len(oldest))
    newest = tables.newest_with(term, scope, PROBED_ROWS)
    reach = max(oldest[-1] - first, last - newest[-1]) + 1
    return float(min(rows, PROBED_ROWS * (last - first + 1) / reach))


def _add_candidates(
    table: "ScoreTable",
    tables: TermTables,
    scope: TermScope,
    query: list[str],
    rows_with: Scores,
    weights: Scores,
    limit: int,
) -> None:
    room, left = CANDIDATE_ROWS, float(weights.sum())
    small = SMALL_SHARE * left
    for place in np.argsort(-weights, kind="stable").tolist():
        # Stops when the other terms could not lift a row that would not be read above a row among the best.
        if room <= 0 or left <= small or (rows_with[place] > SHORT_LIST and table.gap(limit) >= left - small):
            break
        if rows_with[place] < room / 2:
            rows = tables.all_with(query[place], scope)
        else:
            rows = tables.newest_with(query[place], scope, room)
        table.sums[rows - table.first] += np.float32(weights[place])
        left -= float(weights[place])
        room -= len(rows)


@dataclass(frozen=True)
class ScoreTable:
    """The sum of the weights of those terms that named a row, for every row of a scope.

    `sums` is indexed by the row's distance from the `first`: ids of one table lie close together.
    """

    first: int
    sums: NDArray[np.float32]

    def gap(self, limit: int) -> float:
        """How much more the last of `limit` rows weighs than the heaviest row that would not be read."""
        sums = self.sums[self.sums > 0]
        if len(sums) < limit:
            return 0.0
        if len(sums) <= RESCORED_ROWS:
            return float(np.partition(sums, len(sums) - limit)[-limit])
        ordered = np.partition(sums, [len(sums) - RESCORED_ROWS - 1, len(sums) - limit])
        return float(ordered[-limit] - ordered[-RESCORED_ROWS - 1])

    def batches(self) -> Iterator[Ids]:
        """The rows in growing batches, heaviest first, of equals the newest."""
        places = np.flatnonzero(self.sums)
        ids, sums = (places + self.first).astype(np.int64), self.sums[places]
        if len(ids) > RESCORED_ROWS:
            newer = (ids - self.first) / len(self.sums)
            top = np.argpartition(-(sums + 1e-6 * newer), RESCORED_ROWS)
            yield ids[top[:RESCORED_ROWS]]
            ids, sums = ids[top[RESCORED_ROWS:]], sums[top[RESCORED_ROWS:]]
        ids = ids[np.lexsort((-ids, -sums))]
        at, step = 0, RESCORED_ROWS * 3
        while at < len(ids):
            yield ids[at : at + step]
            at, step = at + step, step * 3
