"""Ranking chunks by their words (BM25), and one ranking from two by reciprocal rank fusion."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from math import log

import numpy as np
from numpy.typing import NDArray

K1, B, RANK_CONSTANT = 1.5, 0.75, 60
_WORD = re.compile(r"\w+")

Slots = NDArray[np.int64]
Mask = NDArray[np.bool_]


class WordIndex:
    """Which slot contains which word how often. `contents` is the caller's list, which only grows."""

    def __init__(self, contents: Sequence[str]) -> None:
        self._contents = contents
        self._postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self._lengths: list[int] = []

    def best(self, query: str, matches: Mask, k: int) -> list[int]:
        """Up to `k` slots among the matches that contain a word of the query, best first; ties are ordered by age.

        How rare a word is counts among the matches: another user's chunks do not change a ranking.
        """
        self._fill(len(matches))
        total = int(np.count_nonzero(matches))
        lengths = np.array(self._lengths[: len(matches)], np.float64)
        average = float(lengths[matches].mean()) or 1.0 if total else 1.0
        scores: dict[int, float] = defaultdict(float)
        for word in sorted(set(_words(query))):
            postings = [(slot, count) for slot, count in self._postings.get(word, ()) if matches[slot]]
            rarity = log(1 + (total - len(postings) + 0.5) / (len(postings) + 0.5))
            for slot, count in postings:
                scores[slot] += rarity * count * (K1 + 1) / (count + K1 * (1 - B + B * lengths[slot] / average))
        return sorted(scores, key=lambda slot: (-scores[slot], slot))[:k]

    def _fill(self, size: int) -> None:
        for slot in range(len(self._lengths), size):
            counts = Counter(_words(self._contents[slot]))
            self._lengths.append(counts.total())
            for word, count in counts.items():
                self._postings[word].append((slot, count))


def fuse(by_vector: Sequence[int], by_words: Sequence[int], alpha: float) -> list[tuple[int, float]]:
    """Slots with their fused score, best first. `alpha` is the weight of the vectors, the words have the rest.

    >>> fuse([1, 2], [2, 3], 0.5)[0][0]
    2
    """
    scores: dict[int, float] = defaultdict(float)
    for ranking, weight in ((by_vector, alpha), (by_words, 1 - alpha)):
        for rank, slot in enumerate(ranking if weight else (), 1):
            scores[slot] += weight / (RANK_CONSTANT + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
