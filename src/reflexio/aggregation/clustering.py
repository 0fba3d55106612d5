"""Which playbooks are about the same topic: average linkage of their vectors, cut at a cosine chosen from the corpus.

One vector a playbook. Contradictions are found by words (`reflexio.language.contradiction`), because vectors hardly
distinguish yes from no; a cluster is split where its members contradict each other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from reflexio.aggregation.linkage import link

Vectors = NDArray[np.float32]
Numbers = NDArray[np.int64]
Contradicts = Callable[[int, int], bool]

SAMPLE = 2048  # rows from which the cut is chosen
PART = 1024  # rows processed at a time, to limit memory
COMPARED = 500  # members of a cluster that each is compared with; in a larger one, those next to its centroid
# Rows on one topic are, on average, half way from the background to identity.
SAME = 0.5
# A higher background is not believed: then nearly all rows are on one topic, and that is no background.
HIGHEST_BACKGROUND = 0.3
# The prior of background and spread, with the weight of so many rows.
PRIOR_BACKGROUND, PRIOR_SPREAD, PRIOR_ROWS = 0.15, 0.12, 10
TAIL, DEVIATIONS = 0.95, 1.645  # of a normal distribution


@dataclass(frozen=True)
class Grouping:
    """One label a row: equal labels are one cluster; numbered by first appearance.

    `similarity` is the average cosine from which two clusters were joined.
    """

    labels: Numbers
    similarity: float


def group(
    vectors: Vectors,
    *,
    similarity: float | None = None,
    contradicts: Contradicts | None = None,
    unrelated: float = 0.0,
) -> Grouping:
    """Clusters rows of unit length by average linkage; rows that contradict each other are never in one cluster.

    The same rows give the same clusters in any order. The clusters of a part of a pool are those of the whole, except
    for the little that the cut moves. `unrelated` is the mean cosine of unrelated texts with the embedder in use (from
    its calibration); it matters for embedders that give high cosines to all texts.
    """
    rows, place, counts = _distinct_rows(vectors)
    if similarity is None:
        similarity = choose_cut(rows[:SAMPLE], unrelated)
    labels = link(rows, counts, similarity)[place]
    if contradicts is not None:
        labels = _split_contradictions(vectors, labels, contradicts)
    return Grouping(_number_by_appearance(labels), similarity)


def centroids(vectors: Vectors, labels: Numbers) -> tuple[Vectors, Numbers]:
    """The mean and the size of each cluster, by label: what `join` compares with."""
    sizes = np.bincount(labels).astype(np.int64)
    means = np.zeros((len(sizes), vectors.shape[1]), np.float32)
    np.add.at(means, labels, vectors)
    means /= np.maximum(sizes, 1)[:, None].astype(np.float32)
    return means, sizes


def join(new: Vectors, centroids: Vectors, sizes: Numbers, similarity: float) -> list[int | None]:
    """For each new row the nearest cluster, or None when none is near enough.

    A centroid is the plain mean of its rows, not of unit length: then a product with it is the average cosine to
    the cluster, and a row joins where `group` would have joined it. Ties go to the larger cluster, then the first.
    """
    _check_rows(new)
    if not len(centroids):
        return [None] * len(new)
    places: list[int | None] = []
    for start in range(0, len(new), PART):
        cosines = new[start : start + PART] @ centroids.T
        nearest = cosines.argmax(axis=1)
        best = cosines[np.arange(len(cosines)), nearest]
        for row in np.flatnonzero(np.count_nonzero(cosines == best[:, None], axis=1) > 1):
            nearest[row] = np.where(cosines[row] == best[row], sizes, -1).argmax()
        places += [int(at) if near >= similarity else None for at, near in zip(nearest, best, strict=True)]
    return places


def _distinct_rows(vectors: Vectors) -> tuple[Vectors, Numbers, Numbers]:
    """The distinct rows, for each input row its place among them, and how often each occurs.

    They are ordered by a digest of their values, so that the first rows are a fair sample in any input order.
    """
    _check_rows(vectors)
    weights = np.random.default_rng(0).integers(1 << 63, size=vectors.shape[1], dtype=np.uint64) | np.uint64(1)
    digests = np.zeros(len(vectors), np.uint64)
    for start in range(0, len(vectors), PART):
        bits = (np.ascontiguousarray(vectors[start : start + PART], np.float32) + np.float32(0)).view(np.uint32)
        mixed = (bits * weights).sum(axis=1)
        digests[start : start + PART] = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
    _, first, place, counts = np.unique(digests, return_index=True, return_inverse=True, return_counts=True)
    return np.asarray(vectors[first], np.float32), place, counts


def _check_rows(vectors: Vectors) -> None:
    if vectors.ndim != 2:
        raise ValueError(f"Vectors are rows, one a playbook; these have the shape {vectors.shape!r}.")
    if len(bad := np.flatnonzero(~np.isfinite(vectors.sum(axis=1)))):
        raise ValueError(f"The vector of row {bad[0]} contains a value that is not a number. Embed it again.")


def _number_by_appearance(labels: Numbers) -> Numbers:
    _, first, place = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[place]


def choose_cut(sample: Vectors, unrelated: float) -> float:
    """The average cosine from which clusters are joined, chosen the same way for every corpus.

    Corpora differ in how similar unrelated rows are (in a bank everybody speaks of cards) and in how many topics can
    be confused. Both are read from the cosines of a sample; the cut is where a pair is as likely to be on one topic as
    on two. The background is the median of the cosines, which one popular topic does not move. Its spread is that of
    its upper half, where similar topics are, without the pairs on one topic. With two normal densities of that spread,
    the cut is half way between them and higher the rarer pairs on one topic are. Apart from the prior, nothing depends
    on the number of rows.
    """
    cosines = np.sort((_pairs(sample) - unrelated) / (1 - unrelated))
    trust = len(sample) / (len(sample) + PRIOR_ROWS)
    background = min(HIGHEST_BACKGROUND, max(0.0, trust * _quantile(cosines, 0.5) + (1 - trust) * PRIOR_BACKGROUND))
    above = len(cosines) - int(np.searchsorted(cosines, background + SAME * (1 - background)))
    # Half of the pairs on one topic are above their average; never more than half of all, nor none.
    same = min(0.5, (2 * above + 1) / (len(cosines) + 10))
    upper = (_quantile(cosines, TAIL * (1 - same)) - _quantile(cosines, 0.5 * (1 - same))) / DEVIATIONS
    spread = (trust * upper + (1 - trust) * PRIOR_SPREAD) / (1 - background)
    way = min(SAME, SAME / 2 + spread**2 / SAME * log((1 - same) / same))
    return unrelated + (background + way * (1 - background)) * (1 - unrelated)


def _pairs(sample: Vectors) -> Vectors:
    return np.asarray((sample @ sample.T)[np.triu_indices(len(sample), 1)])


def _quantile(ordered: Vectors, share: float) -> float:
    return float(ordered[int(share * (len(ordered) - 1))]) if len(ordered) else 0.0


def _split_contradictions(vectors: Vectors, labels: Numbers, contradicts: Contradicts) -> Numbers:
    """The labels, with new ones for members that contradict their cluster: a person decides between them."""
    result = labels.copy()
    next_label = int(labels.max(initial=-1)) + 1
    order = np.argsort(labels, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
        if len(members) > 1:
            for side in _sides(vectors, members, contradicts)[1:]:
                result[side] = next_label
                next_label += 1
    return result


def _sides(vectors: Vectors, members: Numbers, contradicts: Contradicts) -> list[list[int]]:
    """Members in groups without contradictions. The most contradicted come first; neutral ones join the nearest."""
    rows = vectors[members]
    central = members[np.argsort(-(rows @ rows.mean(axis=0)), kind="stable")].tolist()
    compared = central[:COMPARED]
    against: dict[int, set[int]] = {member: set() for member in central}
    for at, one in enumerate(central):
        for other in compared[:at]:
            if contradicts(one, other):
                against[one].add(other)
                against[other].add(one)
    if not any(against.values()):
        return [central]
    sides: list[list[int]] = []
    for member in sorted(central, key=lambda one: -len(against[one])):
        compatible = [side for side in sides if against[member].isdisjoint(side)]
        if compatible:
            max(compatible, key=lambda side: _closeness(vectors, member, side)).append(member)
        else:
            sides.append([member])
    return sides


def _closeness(vectors: Vectors, member: int, side: list[int]) -> tuple[float, int]:
    return round(float((vectors[side] @ vectors[member]).mean()), 4), len(side)
