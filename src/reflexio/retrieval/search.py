"""Search of one kind of row: by words, by vectors, or by both fused into one ranking."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from reflexio.models.search import SearchMode
from reflexio.ports.storage import LearningFilter, Matched, QueryVector, TurnFilter, Tx
from reflexio.retrieval.calibration import UNCALIBRATED, Calibration
from reflexio.retrieval.fusion import ByVectors, ByWords, Hit, fuse

LEAST_POOL, POOL_FACTOR = 50, 4
"""Rows that words and vectors each contribute: at least, and for each row of the result."""


class Searchable(Protocol):
    """Rows of one kind within one filter, searchable by words and by vector."""

    def by_words(self, query: str, limit: int) -> Matched: ...

    def by_vector(self, query: QueryVector, limit: int, also: Sequence[int] = ()) -> Matched: ...


@dataclass(frozen=True)
class SearchableLearnings:
    tx: Tx
    where: LearningFilter

    def by_words(self, query: str, limit: int) -> Matched:
        return self.tx.learnings.by_words(self.where, query, limit)

    def by_vector(self, query: QueryVector, limit: int, also: Sequence[int] = ()) -> Matched:
        return self.tx.learnings.by_vector(self.where, query, limit, also)


@dataclass(frozen=True)
class SearchableTurns:
    tx: Tx
    where: TurnFilter

    def by_words(self, query: str, limit: int) -> Matched:
        return self.tx.interactions.by_words(self.where, query, limit)

    def by_vector(self, query: QueryVector, limit: int, also: Sequence[int] = ()) -> Matched:
        return self.tx.interactions.by_vector(self.where, query, limit, also)


@dataclass(frozen=True)
class SearchQuery:
    """`vector` is None when vectors cannot or must not be used; `calibration` is the embedder's."""

    text: str
    vector: QueryVector | None
    mode: SearchMode = SearchMode.HYBRID
    top_k: int = 10
    threshold: float | None = None
    calibration: Calibration = UNCALIBRATED


@dataclass(frozen=True)
class Ranking:
    """Hits, best first; `complete` is False when some rows have no vector yet."""

    hits: tuple[Hit, ...]
    complete: bool = True


def search(rows: Searchable, query: SearchQuery) -> Ranking:
    """The best rows. A threshold is the least cosine for rows that contain no word of the query.

    Where vectors were asked for and are not available, words decide alone.
    """
    pool = max(LEAST_POOL, POOL_FACTOR * query.top_k)
    words, vectors = Matched(), Matched()
    if query.mode is not SearchMode.VECTOR or query.vector is None:
        words = rows.by_words(query.text, pool)
    if query.vector is not None and query.mode is not SearchMode.FTS:
        vectors = rows.by_vector(query.vector, pool, words.ids)
    fused = fuse(
        ByWords(words.ids, words.scores, words.coverage, words.spread),
        ByVectors(vectors.ids, vectors.scores, vectors.mean, vectors.spread),
        trust=query.calibration.trust,
        unrelated=None if query.calibration is UNCALIBRATED else query.calibration.mean,
    )
    near = [hit for hit in fused.hits if _is_near_enough(hit, query.threshold)]
    return Ranking(tuple(near[: query.top_k]), vectors.complete)


def _is_near_enough(hit: Hit, threshold: float | None) -> bool:
    return threshold is None or hit.words_rank is not None or (hit.vector_score or 0.0) >= threshold
