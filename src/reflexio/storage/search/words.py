"""Rows by their words, scored with statistics of the searched rows alone.

Few rows, as one user has, are read and scored outright. Among many, the rarer words of the query name the
candidates, and those are scored in the same way. What differs between databases is left to their tables.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from json import dumps

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from reflexio.storage.search.function_words import FUNCTION_WORDS, emphasis
from reflexio.storage.search.relevance import Counted, Size, chance_spread, coverage, information, relevance
from reflexio.storage.search.sqlite import Entry, Ids, WordTables
from reflexio.storage.search.terms import query_terms, written

Scores = NDArray[np.float64]
Keep = Callable[[list[int]], Collection[int]]
Few = Callable[[], Sequence[int] | None]

# Rows that are read and scored outright, some 2 µs each; FTS5 would seek about 10 µs for each row and word.
SCANNED = 5_000
# Words taken from a query to look up among many rows, the longest first: they are the rarer ones.
LOOKED_UP = 24
# Rows with a word that are looked at from either end of the table to tell how many there are.
PROBED = 100
# The rarest words are followed to all their rows until one row in thirty is named; the others only score.
FOLLOWED, LEAST_FOLLOWED = 30, 4_000
# Candidates that are read and scored at first; four times as many with each further step.
RESCORED = 400


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose rows: those of everyone in an org, or those of one user.

    Digests, so that no id can pose as another or as a part of the search language.
    """

    everyone: str
    user: str | None = None

    @classmethod
    def of(cls, org: str, kind: str, user: str | None = None) -> "Scope":
        return cls(_digest(org, kind), None if user is None else _digest(org, kind, user))

    @property
    def narrowest(self) -> str:
        return self.everyone if self.user is None else self.user


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
        self, tx: Connection, scope: Scope, query: str, limit: int, keep: Keep = frozenset, few: Few = lambda: None
    ) -> Matches:
        """The best rows by words.

        `keep` says which of some ids pass the caller's filters. It is asked about the best first and about
        more until `limit` rows are found, so that a filter never shortens the answer. `few` names all rows that
        pass when they are few: among very many rows they are read outright, because those that do not pass
        would use up the candidates.
        """
        tables = WordTables(tx, self.entity)
        size = tables.size(scope.narrowest)
        if limit <= 0 or not size.rows or not (wanted := query_terms(query)):
            return _NOTHING
        if size.rows <= SCANNED:
            return _filled(_scanned(tables, scope, wanted, size), limit, keep)
        if (named := few()) is not None:
            return _filled(_among(tables, scope, wanted, named), limit, keep)
        return _filled(_looked_up(tables, scope, wanted, size), limit, keep)


_NOTHING = Matches(np.empty(0, np.int64), np.empty(0), np.empty(0))


def _scanned(tables: WordTables, scope: Scope, wanted: list[str], size: Size) -> Iterator[Matches]:
    read = tables.of_everyone if scope.user is None else tables.of_user
    ids, counted = read(scope.narrowest, wanted)
    yield _all_ranked(ids, counted, information(counted.rows_with, size.rows) * emphasis(wanted), size)


def _among(tables: WordTables, scope: Scope, wanted: list[str], named: Sequence[int]) -> Iterator[Matches]:
    ids, counted = tables.among(np.asarray(named, np.int64), scope.narrowest, wanted)
    size = counted.size
    yield _all_ranked(ids, counted, information(counted.rows_with, size.rows) * emphasis(wanted), size)


def _looked_up(tables: WordTables, scope: Scope, wanted: list[str], size: Size) -> Iterator[Matches]:
    words = sorted(wanted, key=lambda term: (term in FUNCTION_WORDS, -len(term)))[:LOOKED_UP]
    rows_with = _probed(tables, words, scope, size.rows)
    weights = information(rows_with, size.rows) * emphasis(words)
    followed = _followed(tables, words, scope, rows_with, max(LEAST_FOLLOWED, size.rows // FOLLOWED))
    spread = chance_spread(weights, rows_with / size.rows)
    for some in _growing(_by_weight(followed, weights)):
        ids, counted = tables.among(some, scope.narrowest, words)
        yield _ranked(ids, counted, weights, relevance(counted, weights, size.mean_length), spread)


def _probed(tables: WordTables, words: list[str], scope: Scope, rows: int) -> Scores:
    """About how many rows hold each word: as dense as at that end of the scope where it is rarer.

    Both ends, because a word may be common among the rows of one import and nowhere else.
    """
    first, last = tables.span(scope.everyone, scope.user)
    counts = []
    for word in words:
        oldest = tables.holding(word, scope.everyone, scope.user, PROBED)
        if len(oldest) < PROBED:
            counts.append(float(len(oldest)))
        else:
            newest = tables.holding_newest(word, scope.everyone, scope.user, PROBED)
            reach = max(oldest[-1] - first, last - newest[-1]) + 1
            counts.append(min(rows, PROBED * (last - first + 1) / reach))
    return np.array(counts)


def _followed(tables: WordTables, words: list[str], scope: Scope, rows_with: Scores, most: int) -> dict[int, Ids]:
    """The rows of the rarest words, by the place of the word."""
    lists: dict[int, Ids] = {}
    for place in np.argsort(rows_with, kind="stable").tolist():
        if lists and most < rows_with[place]:
            break
        lists[place] = tables.holding(words[place], scope.everyone, scope.user, max(most, PROBED))
        most -= len(lists[place])
    return lists


def _by_weight(lists: dict[int, Ids], weights: Scores) -> Ids:
    """Rows by the sum of the weights of the words that named them, best first, equals by age."""
    named = np.concatenate(list(lists.values()))
    weight = np.concatenate([np.full(len(rows), weights[place]) for place, rows in lists.items()])
    rows, inverse = np.unique(named, return_inverse=True)
    return np.asarray(rows[np.argsort(-np.bincount(inverse, weights=weight), kind="stable")])


def _growing(candidates: Ids) -> Iterator[Ids]:
    at, step = 0, RESCORED
    while at < len(candidates):
        yield candidates[at : at + step]
        at, step = at + step, step * 4


def _all_ranked(ids: Ids, counted: Counted, weights: Scores, size: Size) -> Matches:
    """Rows that are all there are: how far apart their scores lie is known."""
    scores = relevance(counted, weights, size.mean_length)
    return _ranked(ids, counted, weights, scores, float(scores.std()) if len(scores) else 0.0)


def _ranked(ids: Ids, counted: Counted, weights: Scores, scores: Scores, spread: float) -> Matches:
    order = np.lexsort((ids, -scores))[: np.count_nonzero(scores > 0)]
    return Matches(ids[order], scores[order], coverage(counted, weights)[order], spread)


def _filled(batches: Iterator[Matches], limit: int, keep: Keep) -> Matches:
    """The best rows that pass, asking about ever more of them."""
    parts, missing = [_NOTHING], limit
    for batch in batches:
        at, step = 0, limit
        while at < len(batch) and missing > 0:
            asked = batch.ids[at : at + step].tolist()
            passed = keep(asked)
            kept = [place for place, row in enumerate(asked, at) if row in passed][:missing]
            parts.append(Matches(batch.ids[kept], batch.scores[kept], batch.coverage[kept], batch.spread))
            at, step, missing = at + step, step * 4, missing - len(kept)
        if missing <= 0:
            break
    return Matches(
        np.concatenate([part.ids for part in parts]),
        np.concatenate([part.scores for part in parts]),
        np.concatenate([part.coverage for part in parts]),
        parts[-1].spread,
    )


def _entry(row: Row) -> Entry:
    return Entry(row.scope.narrowest, row.id, row.scope.everyone, written(row.text))


def _digest(*parts: str) -> str:
    return "s" + blake2b(dumps(parts).encode(), digest_size=12).hexdigest()
