"""Hits that differ: maximal marginal relevance over a pool somewhat larger than what is asked for."""

import numpy as np
from numpy.typing import NDArray

from reflexio.errors import InvalidRequest

Vectors = NDArray[np.float32]


def checked(k: int, diversity: float | None) -> None:
    if k < 1:
        raise InvalidRequest(f"k must be at least 1, not {k!r}.")
    if diversity is not None and not 0.0 <= diversity <= 1.0:
        raise InvalidRequest(f"diversity must be between 0 and 1, not {diversity!r}.")


def pool(k: int, diversity: float | None) -> int:
    """How many of the nearest are looked at."""
    return max(4 * k, 20) if diversity else k


def diverse(scores: NDArray[np.float32], rows: Vectors, k: int, diversity: float) -> list[int]:
    """Places of `k` of the pool, best first: near the query, and with growing `diversity` far from each other."""
    chosen: list[int] = []
    nearest = np.zeros(len(rows), np.float32)
    left = np.ones(len(rows), np.bool_)
    while left.any() and len(chosen) < k:
        worth = np.where(left, (1 - diversity) * scores - diversity * nearest, -np.inf)
        best = int(worth.argmax()) if chosen else int(np.where(left, scores, -np.inf).argmax())
        left[best] = False
        likeness = rows @ rows[best]
        nearest = likeness if not chosen else np.maximum(nearest, likeness)
        chosen.append(best)
    return chosen
