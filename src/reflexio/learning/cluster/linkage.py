"""Joining what is nearest, over and over: average linkage, with one vector a group instead of all distances.

The average cosine between the rows of two groups is the product of the groups' means, so a group is its mean and
its size. Groups that are each other's nearest are joined in any order with the same result, so all such pairs are
joined at once. Two groups reach an average only where two of their parts do, so a pair below the cut is forgotten.
Only where a large group takes in small ones is the order not that of one join at a time.
"""

import numpy as np
from numpy.typing import NDArray

from reflexio.learning.cluster.near import MOST, Pairs, near, products

Vectors = NDArray[np.float32]
Places = NDArray[np.int64]

NEARLY = np.float32(0.02)  # of cosine
FAR_LARGER = 32  # times: what joins does not move the mean of such a group enough to matter to the next


def link(rows: Vectors, counts: Places, similarity: float) -> Places:
    """The group of each row, from 0. A row stands for `counts` equal ones. Uses up what it is given."""
    groups = np.arange(len(rows))
    means, sizes = rows, counts
    while len((pairs := near(means, similarity)).one):
        into = _join(means, sizes, pairs, similarity)
        kept, place = np.unique(into, return_inverse=True)
        groups = place[groups]
        means, sizes = means[kept], sizes[kept]
    return groups


def _join(means: Vectors, sizes: Places, pairs: Pairs, similarity: float) -> Places:
    """Joins along the pairs as long as one is near enough: for each group the one it is now part of."""
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
    """Groups that are joined now, and the host of each: one of two that are nearest to each other, or a far larger one.

    The larger one takes in several at once, if they are nearly as near to it as its nearest: else it would be one a
    round, and a popular matter as many rounds as it has rows.
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
    """For each group the one nearest to it, or -1, and how alike they are. Of equals the first pair's."""
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
    """Of those with one host the most alike, so many that together they are still far smaller than it."""
    small = small[np.lexsort((small, -alike[small], nearest[small]))]
    host = nearest[small]
    so_far = np.cumsum(sizes[small])
    first = np.searchsorted(host, host)
    before = so_far[first] - sizes[small[first]]
    return np.asarray(small[(so_far - before) * FAR_LARGER <= sizes[host]])


def _after(pairs: Pairs, means: Vectors, into: Places, moved: Places, similarity: float) -> Pairs:
    """The pairs between what there is now. Only those of groups that changed are weighed again."""
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
    """The best pairs of each group: what else it is near to is found again when these are used up."""
    ends = np.concatenate([pairs.one, pairs.other])
    order = np.lexsort((-np.concatenate([pairs.alike, pairs.alike]), ends))
    ordered = ends[order]
    good = np.empty(len(ends), bool)
    good[order] = np.arange(len(ends)) - np.searchsorted(ordered, ordered) < MOST
    kept = good[: len(pairs.one)] | good[len(pairs.one) :]
    return Pairs(pairs.one[kept], pairs.other[kept], pairs.alike[kept])
