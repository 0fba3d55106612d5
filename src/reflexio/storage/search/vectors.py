"""The nearest rows of one shelf (one org, one kind of row) by cosine, in process and in numpy.

The database is the truth and this a copy to search in: it is rebuilt at start and never asked what exists.
Few rows are scored outright; among many, a pass over sign bits names those that are.
"""

import threading
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reflexio.errors import ProviderError
from reflexio.storage.search.shelf import NOTHING, Ids, Nearest, Shelf, View, Within, ranked, sign_bits

# Below this many rows scoring every one costs no more than the first pass.
SCORED_OUTRIGHT = 4_000
# Rows rescored exactly, by rows asked for. Recall of ten among 112,000 real embeddings, copies and blends:
# .990 at 200 rows, .997 at 500, .998 at 1,000, .999 at 2,000; a thousand cost about a millisecond.
LEAST_RESCORED, RESCORED_FOR_ONE = 1_000, 20
# Rows by which the mean and the spread among many are told.
SAMPLED = 500
# Dead slots are dropped when they outnumber the living, and there are enough of them to matter.
WORTH_COMPACTING = 1_024
_NOT_FINITE = np.int16(0x7C00)


class VectorIndex:
    """Unit vectors of one shelf. One writer and any number of readers may use it at once.

    >>> index = VectorIndex(2)
    >>> index.add([1, 2], ["ada", "bob"], [[1, 0], [0, 1]])
    >>> index.nearest([1, 0], 1).ids.tolist()
    [1]
    """

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self._shelf = Shelf(dimensions)
        self._writing = threading.Lock()

    def __len__(self) -> int:
        return len(self._shelf.slots)

    def __contains__(self, row: int) -> bool:
        return row in self._shelf.slots

    def add(self, ids: Sequence[int] | Ids, users: Sequence[str], vectors: ArrayLike) -> None:
        """Add rows; an id that is known already is replaced. All of them or none."""
        rows = _checked(vectors, self.dimensions)
        if not len(ids) == len(users) == len(rows):
            raise ValueError(f"{len(ids)} ids, {len(users)} users and {len(rows)} vectors")
        with self._writing:
            self._shelf.append(np.asarray(ids, np.int64), users, rows)
            self._compact()

    def remove(self, ids: Collection[int]) -> None:
        """Forget rows; unknown ids are passed over."""
        with self._writing:
            self._shelf.forget(ids)
            self._compact()

    def nearest(self, query: ArrayLike, k: int, *, user: str | None = None, within: Within | None = None) -> Nearest:
        """The `k` nearest rows: of everyone, of one user, or of the ids named by `within`."""
        return NOTHING if k <= 0 else next(self.batches(query, k, user=user, within=within), NOTHING)

    def batches(
        self, query: ArrayLike, size: int, *, user: str | None = None, within: Within | None = None
    ) -> Iterator[Nearest]:
        """The same rows in batches of `size`, then ever larger ones, until there are no more.

        For a caller that filters in the database: what the first batch computed is kept for the next. Later
        batches see the rows as they were at the first.
        """
        target = _checked([np.asarray(query)], self.dimensions)[0].astype(np.float32)
        view, chosen = self._shelf.choose(user, within)
        if chosen is None and view.used > SCORED_OUTRIGHT:
            yield from _coarse_to_fine(view, target, max(1, size))
        else:
            slots = np.arange(view.used) if chosen is None else chosen
            yield from _growing(view.nearest(slots, target), max(1, size))

    def _compact(self) -> None:
        if (dead := self._shelf.used - len(self._shelf.slots)) > WORTH_COMPACTING and dead > len(self):
            self._shelf = self._shelf.without_the_dead()


def _coarse_to_fine(view: View, target: NDArray[np.float32], size: int) -> Iterator[Nearest]:
    """Rank by signs, rescore the front of that ranking exactly, and go on from there when asked for more."""
    bits = sign_bits(target[None, :])[0]
    distances = view.distances(bits)
    farthest = 64 * len(bits)
    within = np.bincount(distances, minlength=farthest + 2)[: farthest + 1].cumsum()
    sample = view.nearest(np.arange(0, view.used, max(1, view.used // SAMPLED)), target)
    reached, given, pool = -1, 0, NOTHING
    while given < within[-1]:
        limit = min(int(np.searchsorted(within, max(LEAST_RESCORED, RESCORED_FOR_ONE * (given + size)))), farthest)
        if limit > reached:
            slots = np.flatnonzero((distances <= limit) & (distances > reached) if given else distances <= limit)
            fresh = view.nearest(slots, target)
            pool = ranked(np.concatenate((pool.ids, fresh.ids)), np.concatenate((pool.scores, fresh.scores)))
            reached = limit
        yield replace(pool.part(0, size), mean=sample.mean, spread=sample.spread)
        given += min(size, len(pool))
        pool = pool.part(size)
        size *= 4


def _growing(all_of_them: Nearest, size: int) -> Iterator[Nearest]:
    at = 0
    while at < len(all_of_them):
        yield all_of_them.part(at, at + size)
        at, size = at + size, size * 4


def _checked(vectors: ArrayLike, dimensions: int) -> NDArray[np.float16]:
    """The vectors in half precision, or the error of whoever made them."""
    rows = np.asarray(vectors)
    if not len(rows):
        return np.empty((0, dimensions), np.float16)
    if rows.ndim != 2 or rows.shape[1] != dimensions:
        raise ProviderError(f"It gave vectors of shape {rows.shape!r} where {dimensions} numbers each were expected.")
    if rows.dtype != np.float16:
        with np.errstate(over="ignore", invalid="ignore"):
            rows = rows.astype(np.float16)
    # Bits, because half precision is slow to compute with.
    if ((rows.view(np.int16) & _NOT_FINITE) == _NOT_FINITE).any():
        raise ProviderError("It gave a vector with a number that is not finite.")
    return rows


__all__ = ["Nearest", "VectorIndex"]
