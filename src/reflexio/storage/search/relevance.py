"""How well a row's words answer a query: BM25 with the statistics of the searched rows."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reflexio.storage.search.terms import ROW_END, as_numbers

Numbers = NDArray[np.uint64]
Floats = NDArray[np.float64]

# Robertson's usual values: how soon a repeated word stops counting, how much a long row is discounted.
SATURATION, LENGTH_DISCOUNT = 1.2, 0.75
_END = as_numbers(ROW_END.encode())[0]


@dataclass(frozen=True, slots=True)
class Size:
    """How many rows a scope has and how many words are in them."""

    rows: int
    words: int

    @property
    def mean_length(self) -> float:
        return max(1.0, self.words / max(1, self.rows))


@dataclass(frozen=True, slots=True)
class Counted:
    """How often each word of a query (down) stands in each row (across), and how long the rows are."""

    times: NDArray[np.float32]
    lengths: Floats

    @classmethod
    def of(cls, rows: str, wanted: Numbers) -> "Counted":
        """Count in rows that were written one after the other, each ended by `ROW_END`."""
        words = as_numbers(rows.encode())
        ends = np.flatnonzero(words == _END)
        found = [np.flatnonzero(words == number) for number in wanted]
        inside = np.searchsorted(ends, np.concatenate(found))
        inside += np.repeat(np.arange(len(found)) * len(ends), [len(places) for places in found])
        times = np.bincount(inside, minlength=len(found) * len(ends)).reshape(len(found), len(ends))
        return cls(times.astype(np.float32), np.diff(ends, prepend=-1) - 1.0)

    def of_rows(self, chosen: NDArray[np.bool_]) -> "Counted":
        return Counted(self.times[:, chosen], self.lengths[chosen])

    @property
    def rows_with(self) -> Floats:
        return np.asarray(np.count_nonzero(self.times, axis=1), np.float64)

    @property
    def size(self) -> Size:
        return Size(len(self.lengths), int(self.lengths.sum()))


def information(rows_with: Floats, rows: int) -> Floats:
    """What it tells about a row that it has a word which `rows_with` of `rows` have; never below zero."""
    return np.log1p((rows - rows_with + 0.5) / (rows_with + 0.5))


def relevance(counted: Counted, weights: Floats, mean_length: float) -> Floats:
    """The score of every row; a row of mean length with each word once gets the sum of the weights."""
    discount = SATURATION * (1 - LENGTH_DISCOUNT + LENGTH_DISCOUNT * counted.lengths / mean_length)
    return weights @ (counted.times * (SATURATION + 1) / (counted.times + discount))


def coverage(counted: Counted, weights: Floats) -> Floats:
    """How much of what the query tells, from 0 to 1, each row holds."""
    return weights @ (counted.times > 0) / max(float(weights.sum()), 1e-9)


def chance_spread(weights: Floats, share: Floats) -> float:
    """How far apart the scores of all rows lie if words, each in a `share` of the rows, fall by chance."""
    return float(np.sqrt((weights**2 * share * (1 - share)).sum()))
