"""Search of one kind of row: by words, by meaning, or by both as one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from reflexio.models.search import SearchMode
from reflexio.ports.storage import Matched, QueryVector
from reflexio.retrieval.exam import UNEXAMINED, Grade
from reflexio.retrieval.fusion import ByVectors, ByWords, Hit, fuse

LEAST_POOL, POOL = 50, 4
"""Rows that each side brings in, at least and for each row asked for."""


class Arms(Protocol):
    """The two ways to find rows of one kind within one filter."""

    def by_words(self, query: str, limit: int) -> Matched: ...

    def by_vector(self, query: QueryVector, limit: int, also: Sequence[int] = ()) -> Matched: ...


@dataclass(frozen=True)
class Question:
    """What is asked. `vector` is None when meaning cannot or shall not count; `grade` is the embedder's."""

    text: str
    vector: QueryVector | None
    mode: SearchMode = SearchMode.HYBRID
    top_k: int = 10
    threshold: float | None = None
    grade: Grade = UNEXAMINED


@dataclass(frozen=True)
class Found:
    """Hits, best first; `complete` is False when some rows could not be found by meaning yet."""

    hits: tuple[Hit, ...]
    complete: bool = True


def search(arms: Arms, question: Question) -> Found:
    """The best rows. A threshold is a least cosine for rows that no word of the query names.

    Where meaning was asked for and cannot be had, words answer.
    """
    pool = max(LEAST_POOL, POOL * question.top_k)
    words, vectors = Matched(), Matched()
    if question.mode is not SearchMode.VECTOR or question.vector is None:
        words = arms.by_words(question.text, pool)
    if question.vector is not None and question.mode is not SearchMode.FTS:
        vectors = arms.by_vector(question.vector, pool, words.ids)
    fused = fuse(
        ByWords(words.ids, words.scores, words.coverage, words.spread),
        ByVectors(vectors.ids, vectors.scores, vectors.mean, vectors.spread),
        trust=question.grade.trust,
        strangers=None if question.grade is UNEXAMINED else question.grade.mean,
    )
    near = [hit for hit in fused.hits if _near(hit, question.threshold)]
    return Found(tuple(near[: question.top_k]), vectors.complete)


def _near(hit: Hit, threshold: float | None) -> bool:
    return threshold is None or hit.words_rank is not None or (hit.vector_score or 0.0) >= threshold
