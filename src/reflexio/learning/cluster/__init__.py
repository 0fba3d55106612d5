"""Which playbooks are about one matter: by their vectors, at a cosine that is chosen from the corpus.

One vector a playbook. Whether two contradict each other is told by words (`language.contradiction`), because vectors
hardly tell yes from no.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reflexio.learning.cluster.apart import apart
from reflexio.learning.cluster.cut import cut
from reflexio.learning.cluster.linkage import link

__all__ = ["Grouping", "Vectors", "centroids", "group", "join"]

Vectors = NDArray[np.float32]
Numbers = NDArray[np.int64]

SAMPLE = 2048  # rows by which the cut is chosen
PART = 1024  # rows handled at a time, for the memory


@dataclass(frozen=True)
class Grouping:
    """One label a row: equal ones are one group, also of one; numbered by first appearance.

    `similarity` is the cosine from which rows were joined, on average over the pairs of two groups.
    """

    labels: Numbers
    similarity: float


def group(
    vectors: Vectors,
    *,
    similarity: float | None = None,
    opposed: Callable[[int, int], bool] | None = None,
    strangers: float = 0.0,
) -> Grouping:
    """Groups rows of unit length by average linkage; rows that are `opposed` are never in one group.

    The same rows give the same groups in any order, and those of a part of a pool are those of the whole but for
    the little that the cut moves. `strangers` is the mean cosine of unrelated texts with the embedder in use (the
    grade of the exam knows it); it matters for embedders that hold all texts alike.
    """
    rows, place, counts = _distinct(vectors)
    if similarity is None:
        similarity = cut(rows[:SAMPLE], strangers)
    labels = link(rows, counts, similarity)[place]
    if opposed is not None:
        labels = apart(vectors, labels, opposed)
    return Grouping(_numbered(labels), similarity)


def centroids(vectors: Vectors, labels: Numbers) -> tuple[Vectors, Numbers]:
    """The mean and the number of the rows of each group from 0: what `join` compares with."""
    sizes = np.bincount(labels).astype(np.int64)
    means = np.zeros((len(sizes), vectors.shape[1]), np.float32)
    np.add.at(means, labels, vectors)
    means /= np.maximum(sizes, 1)[:, None].astype(np.float32)
    return means, sizes


def join(new: Vectors, centroids: Vectors, sizes: Numbers, similarity: float) -> list[int | None]:
    """For each new row the group that it is nearest to, or None: it waits for others like it.

    A centroid is the plain mean of its rows, not of unit length: then a product with it is the average cosine to
    the group, and a row joins where `group` would have joined it. Of equals the larger group, then the first.
    """
    _check(new)
    if not len(centroids):
        return [None] * len(new)
    found: list[int | None] = []
    for start in range(0, len(new), PART):
        alike = new[start : start + PART] @ centroids.T
        nearest = alike.argmax(axis=1)
        best = alike[np.arange(len(alike)), nearest]
        for row in np.flatnonzero(np.count_nonzero(alike == best[:, None], axis=1) > 1):
            nearest[row] = np.where(alike[row] == best[row], sizes, -1).argmax()
        found += [int(at) if near >= similarity else None for at, near in zip(nearest, best, strict=True)]
    return found


def _distinct(vectors: Vectors) -> tuple[Vectors, Numbers, Numbers]:
    """The rows that differ, in an order that depends on nothing but themselves; for each row its place, and how many.

    The order is that of a digest, so that the first rows are a fair sample.
    """
    _check(vectors)
    weights = np.random.default_rng(0).integers(1 << 63, size=vectors.shape[1], dtype=np.uint64) | np.uint64(1)
    digests = np.zeros(len(vectors), np.uint64)
    for start in range(0, len(vectors), PART):
        bits = (np.ascontiguousarray(vectors[start : start + PART], np.float32) + np.float32(0)).view(np.uint32)
        mixed = (bits * weights).sum(axis=1)
        digests[start : start + PART] = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
    _, first, place, counts = np.unique(digests, return_index=True, return_inverse=True, return_counts=True)
    return np.asarray(vectors[first], np.float32), place, counts


def _check(vectors: Vectors) -> None:
    if vectors.ndim != 2:
        raise ValueError(f"Vectors are rows, one a playbook; these have the shape {vectors.shape!r}.")
    if len(bad := np.flatnonzero(~np.isfinite(vectors.sum(axis=1)))):
        raise ValueError(f"The vector of row {bad[0]} is no vector: it holds what is not a number. Embed it again.")


def _numbered(labels: Numbers) -> Numbers:
    _, first, place = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[place]
