"""Average linkage with one vector for each cluster: the two nearest clusters are joined repeatedly.

The average cosine between two clusters is the product of their means, so a mean and a size represent a cluster.
Clusters that are each other's nearest can be joined in any order, so all such pairs are joined at once. The
average of two clusters is above the cut only if that of two of their parts is, so a pair below the cut is dropped. Only
where a large cluster absorbs small ones does the order differ from joining one pair at a time.

Near rows are found without comparing all with all: rows are partitioned into regions, and a row is compared with
those of the nearest `NEAREST_REGIONS`.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Places = NDArray[np.int64]

NEARLY = np.float32(0.02)  # of cosine
FAR_LARGER = 32  # times: what joins such a cluster does not move its mean enough to matter
REGION = 512  # rows
NEAREST_REGIONS = 24  # regions
MOST = 24  # neighbours of a row
PART = 16  # of the products of a row
ROUNDS = 4  # of moving the regions' centres


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of rows `one < other` and their cosine, without duplicates."""

    one: Places
    other: Places
    alike: Vectors


@dataclass(frozen=True, slots=True)
class _Block:
    """`count` rows from `first` of `others`, which are compared with all of `others`."""

    others: Places
    first: int
    count: int


def link(rows: Vectors, counts: Places, similarity: float) -> Places:
    """The cluster of each row, from 0. A row stands for `counts` equal ones. Overwrites its arguments."""
    groups = np.arange(len(rows))
    means, sizes = rows, counts
    while len((pairs := nearby_pairs(means, similarity)).one):
        into = _join(means, sizes, pairs, similarity)
        kept, place = np.unique(into, return_inverse=True)
        groups = place[groups]
        means, sizes = means[kept], sizes[kept]
    return groups


def _join(means: Vectors, sizes: Places, pairs: Pairs, similarity: float) -> Places:
    """Joins along the pairs until none is near enough; returns for each cluster the one it is now part of."""
    into = np.arange(len(means))
    alive = len(means)
    while len(pairs.one):
        joining, host = _joining(pairs, sizes)
        hosts = np.unique(host)
        means[hosts] *= sizes[hosts, None]
        np.add.at(means, host, means[joining] * sizes[joining, None].astype(np.float32))
        np.add.at(sizes, host, sizes[joining])
        means[hosts] /= sizes[hosts, None]
        into[joining] = host
        alive -= len(joining)
        pairs = _after(pairs, means, into, np.concatenate([joining, hosts]), similarity)
        if len(pairs.one) > 2 * MOST * alive:
            pairs = _thinned(pairs)
    while (into[into] != into).any():
        into = into[into]
    return into


def _joining(pairs: Pairs, sizes: Places) -> tuple[Places, Places]:
    """Clusters that are joined in this round, and the host of each: its mutual nearest, or a far larger cluster.

    The larger one absorbs several at once if they are nearly as near as its nearest; otherwise a popular topic would
    take as many rounds as it has rows.
    """
    nearest, alike = _nearest(pairs, len(sizes))
    known = np.flatnonzero(nearest >= 0)
    small = known[sizes[known] * FAR_LARGER <= sizes[nearest[known]]]
    small = small[alike[small] >= alike[nearest[small]] - NEARLY]
    leaving = np.zeros(len(sizes), bool)
    leaving[small] = True
    mutual = known[nearest[nearest[known]] == known]
    equal = mutual[~leaving[mutual] & ~leaving[nearest[mutual]]]
    leaving[equal] = True
    small = _few(small[~leaving[nearest[small]]], nearest, alike, sizes)
    equal = equal[equal < nearest[equal]]
    return np.concatenate([nearest[equal], small]), np.concatenate([equal, nearest[small]])


def _nearest(pairs: Pairs, count: int) -> tuple[Places, Vectors]:
    """For each cluster the nearest one, or -1, and their cosine. Ties go to the first pair."""
    best = np.full(count, -np.inf, np.float32)
    first = np.full(count, len(pairs.one))
    for ends in (pairs.one, pairs.other):
        np.maximum.at(best, ends, pairs.alike)
    for ends in (pairs.one, pairs.other):
        at = np.flatnonzero(pairs.alike == best[ends])
        np.minimum.at(first, ends[at], at)
    nearest = np.full(count, -1)
    known = np.flatnonzero(first < len(pairs.one))
    nearest[known] = pairs.one[first[known]] + pairs.other[first[known]] - known
    return nearest, best


def _few(small: Places, nearest: Places, alike: Vectors, sizes: Places) -> Places:
    """Of those with one host the nearest, as many as together are still far smaller than the host."""
    small = small[np.lexsort((small, -alike[small], nearest[small]))]
    host = nearest[small]
    so_far = np.cumsum(sizes[small])
    first = np.searchsorted(host, host)
    before = so_far[first] - sizes[small[first]]
    return np.asarray(small[(so_far - before) * FAR_LARGER <= sizes[host]])


def _after(pairs: Pairs, means: Vectors, into: Places, moved: Places, similarity: float) -> Pairs:
    """The pairs after a round. Only pairs of clusters that changed are computed again."""
    changed = np.zeros(len(means), bool)
    changed[moved] = True
    again = changed[pairs.one] | changed[pairs.other]
    one, other = into[pairs.one[again]], into[pairs.other[again]]
    keys = np.unique((np.minimum(one, other) * len(means) + np.maximum(one, other))[one != other])
    one, other = np.divmod(keys, len(means))
    alike = products(means, one, other)
    enough = alike >= similarity
    return Pairs(
        np.concatenate([pairs.one[~again], one[enough]]),
        np.concatenate([pairs.other[~again], other[enough]]),
        np.concatenate([pairs.alike[~again], alike[enough]]),
    )


def _thinned(pairs: Pairs) -> Pairs:
    """The best pairs of each cluster; other near ones are found again when these are used up."""
    ends = np.concatenate([pairs.one, pairs.other])
    order = np.lexsort((-np.concatenate([pairs.alike, pairs.alike]), ends))
    ordered = ends[order]
    good = np.empty(len(ends), bool)
    good[order] = np.arange(len(ends)) - np.searchsorted(ordered, ordered) < MOST
    kept = good[: len(pairs.one)] | good[len(pairs.one) :]
    return Pairs(pairs.one[kept], pairs.other[kept], pairs.alike[kept])


def nearby_pairs(rows: Vectors, similarity: float) -> Pairs:
    """For every row its nearest rows with a product of at least `similarity`."""
    if len(rows) < 2:
        nothing = np.empty(0, np.int64)
        return Pairs(nothing, nothing, np.empty(0, np.float32))
    regions = _regions(rows)
    with ThreadPoolExecutor(2) as threads:
        parts = list(threads.map(lambda block: _near_in_block(rows, block, similarity), _blocks(rows, regions)))
    one, other = (np.concatenate(each) for each in zip(*parts, strict=True))
    keys = np.unique(np.minimum(one, other) * len(rows) + np.maximum(one, other))
    one, other = np.divmod(keys, len(rows))
    return Pairs(one, other, products(rows, one, other))


def products(rows: Vectors, one: Places, other: Places) -> Vectors:
    """The product of each pair; in parts, to limit memory."""
    alike = np.empty(len(one), np.float32)
    for start in range(0, len(one), 1 << 14):
        part = slice(start, start + (1 << 14))
        alike[part] = np.einsum("ij,ij->i", rows[one[part]], rows[other[part]])
    return alike


def _regions(rows: Vectors) -> list[Places]:
    """Rows by the nearest of several centres; the initial centres are spread evenly over the rows."""
    count = -(-len(rows) // REGION)
    if count <= NEAREST_REGIONS:
        return [np.arange(len(rows))[start::count] for start in range(count)]
    centres = rows[np.arange(count) * REGION]
    for _ in range(ROUNDS):
        home = _home(rows, centres)
        members = _split_by_region(home, count)
        centres = np.stack([rows[each].sum(axis=0) if len(each) else centres[at] for at, each in enumerate(members)])
        centres /= np.maximum(np.linalg.norm(centres, axis=1, keepdims=True), 1e-9)
    return [each for each in members if len(each)]


def _home(rows: Vectors, centres: Vectors) -> Places:
    parts = [(rows[start : start + 4096] @ centres.T).argmax(axis=1) for start in range(0, len(rows), 4096)]
    return np.concatenate(parts)


def _split_by_region(home: Places, count: int) -> list[Places]:
    order = np.argsort(home, kind="stable")
    return np.split(order, np.cumsum(np.bincount(home, minlength=count))[:-1])


def _blocks(rows: Vectors, regions: list[Places]) -> Iterator[_Block]:
    centres = np.stack([rows[each].mean(axis=0) for each in regions])
    closeness = centres @ centres.T
    np.fill_diagonal(closeness, np.inf)
    for at, members in enumerate(regions):
        nearest = np.argsort(-closeness[at], kind="stable")[:NEAREST_REGIONS]
        others = np.concatenate([regions[each] for each in nearest])
        for start in range(0, len(members), REGION):
            yield _Block(others, start, min(REGION, len(members) - start))


def _near_in_block(rows: Vectors, block: _Block, similarity: float) -> tuple[Places, Places]:
    own = block.first + np.arange(block.count)
    some = block.others[own]
    alike = rows[some] @ rows[block.others].T
    alike[np.arange(block.count), own] = -np.inf
    row, column = np.divmod(np.flatnonzero(alike >= _floor(alike, similarity)), len(block.others))
    return some[row], block.others[column]


def _floor(alike: Vectors, similarity: float) -> Vectors:
    """For each row the least product to keep: that of its `MOST` best or a few more.

    Found among the maxima of parts of a row, since sorting a whole row costs more than computing it.
    """
    parts = alike.shape[1] // PART
    maxima = np.hstack(
        [alike[:, PART * parts :], alike[:, : PART * parts].reshape(len(alike), PART, parts).max(axis=1)]
    )
    if maxima.shape[1] <= MOST:
        return np.full((len(alike), 1), similarity, np.float32)
    best = np.partition(maxima, -MOST, axis=1)[:, -MOST, None]
    return np.maximum(best, np.float32(similarity))
