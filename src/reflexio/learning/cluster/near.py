"""Which rows are near each other, without comparing all with all.

The rows are sorted into regions of like size; a row is compared with those of the nearest regions. There is no
size at which the way changes: the more rows, the more regions, and up to `LOOKED_AT` regions all are near.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Places = NDArray[np.int64]

REGION = 512  # rows
LOOKED_AT = 24  # regions
MOST = 24  # neighbours of a row
PART = 16  # of the products of a row
TURNS = 4  # of moving the regions' middles


@dataclass(frozen=True, slots=True)
class Pairs:
    """Rows `one < other` and how alike they are. No pair twice."""

    one: Places
    other: Places
    alike: Vectors


@dataclass(frozen=True, slots=True)
class _Look:
    """The rows to compare with, and which of these are compared with all: `count` from `first`."""

    others: Places
    first: int
    count: int


def near(rows: Vectors, similarity: float) -> Pairs:
    """For every row those nearest to it, of the ones with a product of at least `similarity`."""
    if len(rows) < 2:
        nothing = np.empty(0, np.int64)
        return Pairs(nothing, nothing, np.empty(0, np.float32))
    regions = _regions(rows)
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(lambda look: _nearest(rows, look, similarity), _looks(rows, regions)))
    one, other = (np.concatenate(each) for each in zip(*found, strict=True))
    keys = np.unique(np.minimum(one, other) * len(rows) + np.maximum(one, other))
    one, other = np.divmod(keys, len(rows))
    return Pairs(one, other, products(rows, one, other))


def products(rows: Vectors, one: Places, other: Places) -> Vectors:
    """Pair by pair; in parts, for the memory."""
    alike = np.empty(len(one), np.float32)
    for start in range(0, len(one), 1 << 14):
        part = slice(start, start + (1 << 14))
        alike[part] = np.einsum("ij,ij->i", rows[one[part]], rows[other[part]])
    return alike


def _regions(rows: Vectors) -> list[Places]:
    """Rows by the middle they are nearest to; the first middles are spread evenly over the rows."""
    count = -(-len(rows) // REGION)
    if count <= LOOKED_AT:
        return [np.arange(len(rows))[start::count] for start in range(count)]
    middles = rows[np.arange(count) * REGION]
    for _ in range(TURNS):
        home = _home(rows, middles)
        members = _members(home, count)
        middles = np.stack([rows[each].sum(axis=0) if len(each) else middles[at] for at, each in enumerate(members)])
        middles /= np.maximum(np.linalg.norm(middles, axis=1, keepdims=True), 1e-9)
    return [each for each in members if len(each)]


def _home(rows: Vectors, middles: Vectors) -> Places:
    parts = [(rows[start : start + 4096] @ middles.T).argmax(axis=1) for start in range(0, len(rows), 4096)]
    return np.concatenate(parts)


def _members(home: Places, count: int) -> list[Places]:
    order = np.argsort(home, kind="stable")
    return np.split(order, np.cumsum(np.bincount(home, minlength=count))[:-1])


def _looks(rows: Vectors, regions: list[Places]) -> Iterator[_Look]:
    middles = np.stack([rows[each].mean(axis=0) for each in regions])
    closeness = middles @ middles.T
    np.fill_diagonal(closeness, np.inf)
    for at, members in enumerate(regions):
        nearest = np.argsort(-closeness[at], kind="stable")[:LOOKED_AT]
        others = np.concatenate([regions[each] for each in nearest])
        for start in range(0, len(members), REGION):
            yield _Look(others, start, min(REGION, len(members) - start))


def _nearest(rows: Vectors, look: _Look, similarity: float) -> tuple[Places, Places]:
    own = look.first + np.arange(look.count)
    some = look.others[own]
    alike = rows[some] @ rows[look.others].T
    alike[np.arange(look.count), own] = -np.inf
    row, column = np.divmod(np.flatnonzero(alike >= _floor(alike, similarity)), len(look.others))
    return some[row], look.others[column]


def _floor(alike: Vectors, similarity: float) -> Vectors:
    """Row by row what to keep from: the `MOST` best or a few more.

    Found among the maxima of parts of a row, since to sort the whole row costs more than to compute it.
    """
    parts = alike.shape[1] // PART
    maxima = np.hstack(
        [alike[:, PART * parts :], alike[:, : PART * parts].reshape(len(alike), PART, parts).max(axis=1)]
    )
    if maxima.shape[1] <= MOST:
        return np.full((len(alike), 1), similarity, np.float32)
    best = np.partition(maxima, -MOST, axis=1)[:, -MOST, None]
    return np.maximum(best, np.float32(similarity))
