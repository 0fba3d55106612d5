"""The best rows by words among very many, without reading them all.

The most telling words name the candidates. More common ones are only followed as long as they could still decide which
rows are among the best; those candidates that hold most of the query are then read and scored.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reflexio.storage.search.function_words import FUNCTION_WORDS, emphasis
from reflexio.storage.search.relevance import Size, chance_spread, coverage, information, relevance
from reflexio.storage.search.scope import Scope
from reflexio.storage.search.sqlite import Ids, WordTables

Scores = NDArray[np.float64]
Keep = Callable[[list[int]], Collection[int]]

# Words taken from a query, the longest first: they are the rarer ones.
LOOKED_UP = 24
# Rows with a word that are looked at from either end of the table to tell how many there are.
PROBED = 100
# Rows that all words together may name, 0.1 µs each; beyond that the newest are named.
FOLLOWED = 60_000
# A list so short that following it costs less than asking whether it has to be.
SHORT = 2_000
# A share of the query so small that it decides nothing worth the time, such as its articles.
SMALL = 0.3
# Candidates that are read and scored at first, some 8 µs each; three times as many with each further step.
RESCORED = 300


@dataclass
class Best:
    """The best rows that pass, as far as they are known: at most `limit`."""

    limit: int
    keep: Keep
    ids: Ids = field(default_factory=lambda: np.empty(0, np.int64))
    scores: Scores = field(default_factory=lambda: np.empty(0))
    coverage: Scores = field(default_factory=lambda: np.empty(0))

    @property
    def is_full(self) -> bool:
        return len(self.ids) >= self.limit

    def take(self, ids: Ids, scores: Scores, covered: Scores) -> None:
        passed = self._passed(ids, np.lexsort((ids, -scores))[: np.count_nonzero(scores > 0)])
        all_ids = np.concatenate([self.ids, ids[passed]])
        all_scores = np.concatenate([self.scores, scores[passed]])
        best = np.lexsort((all_ids, -all_scores))[: self.limit]
        self.coverage = np.concatenate([self.coverage, covered[passed]])[best]
        self.ids, self.scores = all_ids[best], all_scores[best]

    def _passed(self, ids: Ids, places: NDArray[np.int64]) -> list[int]:
        """Asks about the best first, and about more only until there are enough."""
        found: list[int] = []
        at, step = 0, self.limit
        while at < len(places) and len(found) < self.limit:
            asked = places[at : at + step].tolist()
            passed = self.keep(ids[asked].tolist())
            found += [place for place in asked if int(ids[place]) in passed]
            at, step = at + step, step * 4
        return found[: self.limit]


def look_up(tables: WordTables, scope: Scope, wanted: list[str], size: Size, best: Best) -> float:
    """Finds the best rows that pass. Gives back how far apart the scores of all rows lie."""
    words = sorted(wanted, key=lambda term: (term in FUNCTION_WORDS, -len(term)))[:LOOKED_UP]
    rows_with = _probed(tables, words, scope, size.rows)
    weights = information(rows_with, size.rows) * emphasis(words)
    for some in _growing(_named(tables, scope, words, rows_with, weights, best.limit)):
        ids, counted = tables.among(some, scope.narrowest, words)
        best.take(ids, relevance(counted, weights, size.mean_length), coverage(counted, weights))
        if best.is_full:
            break
    return chance_spread(weights, rows_with / size.rows)


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


@dataclass
class Tally:
    """Rows that words have named, and the weights of these words."""

    first: int
    sums: NDArray[np.float32]
    """By the row's distance from the first: ids of one table lie close together."""

    def add(self, rows: Ids, weight: float) -> None:
        self.sums[rows - self.first] += np.float32(weight)

    def gap(self, limit: int) -> float:
        """How much more the last row that is wanted weighs than the heaviest that would not be read."""
        sums = self.sums[self.sums > 0]
        if len(sums) < limit:
            return 0.0
        if len(sums) <= RESCORED:
            return float(np.partition(sums, len(sums) - limit)[-limit])
        ordered = np.partition(sums, [len(sums) - RESCORED - 1, len(sums) - limit])
        return float(ordered[-limit] - ordered[-RESCORED - 1])

    @property
    def rows(self) -> tuple[Ids, NDArray[np.float32]]:
        places = np.flatnonzero(self.sums)
        return (places + self.first).astype(np.int64), self.sums[places]


def _named(tables: WordTables, scope: Scope, words: list[str], rows_with: Scores, weights: Scores, limit: int) -> Tally:
    first, last = tables.span(scope.everyone, scope.user)
    tally = Tally(first, np.zeros(last - first + 1, np.float32))
    order = np.argsort(-weights, kind="stable").tolist()
    room, left = FOLLOWED, float(weights.sum())
    small = SMALL * left
    for place in order:
        # What is left in other words could not lift a row that would not be read above one that is wanted.
        if room <= 0 or left <= small or (rows_with[place] > SHORT and tally.gap(limit) >= left - small):
            break
        if rows_with[place] < room / 2:
            rows = tables.all_holding(words[place], scope.everyone, scope.user)
        else:
            rows = tables.holding_newest(words[place], scope.everyone, scope.user, room)
        tally.add(rows, float(weights[place]))
        left -= float(weights[place])
        room -= len(rows)
    return tally


def _growing(tally: Tally) -> Iterator[Ids]:
    """The rows of a tally in ever larger parts, heaviest first, of equals the newest."""
    ids, sums = tally.rows
    if len(ids) > RESCORED:
        newer = (ids - tally.first) / len(tally.sums)
        top = np.argpartition(-(sums + 1e-6 * newer), RESCORED)
        yield ids[top[:RESCORED]]
        ids, sums = ids[top[RESCORED:]], sums[top[RESCORED:]]
    ids = ids[np.lexsort((-ids, -sums))]
    at, step = 0, RESCORED * 3
    while at < len(ids):
        yield ids[at : at + step]
        at, step = at + step, step * 3
