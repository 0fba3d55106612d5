"""Joining what is nearest, over and over: average linkage, with one vector a group instead of all distances.

The average cosine between the rows of two groups is the product of the groups' means, so a group is its mean and
its size. Groups that are each other's nearest are joined in any order with the same result, so all such pairs are
joined at once. Two groups reach an average only where two of their parts do, so a pair below the cut is forgotten.
"""

import numpy as np
from numpy.typing import NDArray

from reflexio.learning.cluster.near import Pairs, near, products

Vectors = NDArray[np.float32]
Places = NDArray[np.int64]


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
    while len(pairs.one):
        chosen = _nearest_to_each_other(pairs, len(means))
        one, other = pairs.one[chosen], pairs.other[chosen]
        share = (sizes[other] / (sizes[one] + sizes[other])).astype(np.float32)[:, None]
        means[one] += share * (means[other] - means[one])
        sizes[one] += sizes[other]
        into[other] = one
        pairs = _after(pairs, means, into, np.union1d(one, other), similarity)
    while (into[into] != into).any():
        into = into[into]
    return into


def _nearest_to_each_other(pairs: Pairs, count: int) -> Places:
    """Places of pairs that no better one touches; of equals the first, so that a group is in one pair only."""
    best = np.full(count, -np.inf, np.float32)
    np.maximum.at(best, pairs.one, pairs.alike)
    np.maximum.at(best, pairs.other, pairs.alike)
    mutual = np.flatnonzero((pairs.alike == best[pairs.one]) & (pairs.alike == best[pairs.other]))
    first = np.full(count, len(pairs.one))
    np.minimum.at(first, pairs.one[mutual], mutual)
    np.minimum.at(first, pairs.other[mutual], mutual)
    return np.asarray(mutual[(first[pairs.one[mutual]] == mutual) & (first[pairs.other[mutual]] == mutual)])


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
