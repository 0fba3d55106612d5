"""One ranking from two: what the words say and what the vectors say, added up as evidence.

Both are put in one unit, how unlikely a row is to score that well by chance (in nats). For words that is what
BM25 already adds up, as long as the query is short; a long one shares words with every row, and there the
spread of the scores is the unit. For vectors it is the tail of the similarities among the searched rows, so
that neither the range of an embedder's scores nor the number of rows matters. In long conversations words
are the stronger evidence, among a few one-sentence memories the vectors are, and nobody has to say which.

The vectors' evidence is weighed by what is known about it for this query: the embedder's grade in the exam,
how much of the query the best row by words leaves open, and whether the two agree where the words are sure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import erfc, log, pi, sqrt
from typing import Literal, NamedTuple

# Even an embedder that failed the exam may break a tie between rows that the words hold equal.
LEAST_WEIGHT = 0.15
# The rows that the words put first, by which the agreement of the two is judged.
SUREST = 3
_ROOT_OF_TWO = sqrt(2)


@dataclass(frozen=True, slots=True)
class ByWords:
    """Rows found by words, best first: BM25 scores, and how much of the query each row holds, from 0 to 1.

    `spread` is that of the scores of all rows searched, also of those without a word.
    """

    ids: Sequence[int] = ()
    scores: Sequence[float] = ()
    coverage: Sequence[float] = ()
    spread: float = 0.0


@dataclass(frozen=True, slots=True)
class ByVectors:
    """Rows with their cosine to the query, and its mean and spread among all rows searched.

    In any order. The rows found by words should be among them; one that is not counts as an average row.
    """

    ids: Sequence[int] = ()
    scores: Sequence[float] = ()
    mean: float = 0.0
    spread: float = 0.0


class Hit(NamedTuple):
    """A row, its place in the sum of the evidence, and what that is made of."""

    id: int
    score: float
    words_rank: int | None
    words_score: float
    words_evidence: float
    vector_score: float | None
    vector_evidence: float

    @property
    def led_by(self) -> Literal["words", "vectors"]:
        return "words" if self.words_evidence > self.vector_evidence else "vectors"

    @property
    def why(self) -> str:
        """For people: `words 7.1 (rank 1) + vectors 3.2 (cosine 0.61)`."""
        words = f"words {self.words_evidence:.1f} (rank {self.words_rank})" if self.words_rank else "no words"
        if self.vector_score is None:
            return f"{words}, no vector"
        return f"{words} + vectors {self.vector_evidence:.1f} (cosine {self.vector_score:.2f})"


@dataclass(frozen=True, slots=True)
class Fused:
    """Hits, best first, and the weight that the vectors were given."""

    hits: tuple[Hit, ...]
    vector_weight: float


def fuse(words: ByWords, vectors: ByVectors, *, trust: float = 1.0) -> Fused:
    """Rank all rows of both by the sum of their evidence; equals by cosine, then by age.

    `trust` is the embedder's grade in the exam. Either side may be empty: then the other decides alone.
    """
    cosine = dict(zip(vectors.ids, vectors.scores, strict=True))
    standing = _Standing(vectors.mean, vectors.spread)
    weight = _weight(words, cosine, standing, trust) if cosine else 0.0
    rank = {row: (place, score) for place, (row, score) in enumerate(zip(words.ids, words.scores, strict=True), 1)}
    unit = max(1.0, words.spread)
    hits = []
    for row in rank.keys() | cosine.keys():
        place, score = rank.get(row, (None, 0.0))
        near = cosine.get(row)
        by_words = score / unit
        by_vector = weight * _surprise(standing.of(near))
        hits.append(Hit(row, by_words + by_vector, place, score, by_words, near, by_vector))
    hits.sort(key=lambda hit: (-hit.score, -(-2.0 if hit.vector_score is None else hit.vector_score), hit.id))
    return Fused(tuple(hits), weight)


@dataclass(frozen=True, slots=True)
class _Standing:
    mean: float
    spread: float

    def of(self, cosine: float | None) -> float:
        """How many spreads above the mean; an unknown row, or one among equals, is average."""
        return 0.0 if cosine is None or self.spread <= 1e-6 else (cosine - self.mean) / self.spread


def _weight(words: ByWords, cosine: dict[int, float], standing: _Standing, trust: float) -> float:
    grade = LEAST_WEIGHT + (1 - LEAST_WEIGHT) * min(1.0, max(0.0, trust))
    if not len(words.ids):
        return grade
    covered = min(1.0, max(0.0, words.coverage[0]))
    doubt = covered * (1 - _agreement(words, cosine, standing))
    # A row that holds nearly all of the query leaves nothing to guess. To the fourth power, because one that
    # holds half of it leaves nearly everything to guess.
    return grade * (1 - covered**4) * (1 - doubt)


def _agreement(words: ByWords, cosine: dict[int, float], standing: _Standing) -> float:
    """Where, between average (0) and nearest (1), the vectors see the rows that the words are surest of."""
    nearest = standing.of(max(cosine.values()))
    surest = list(zip(words.ids, words.scores, strict=True))[:SUREST]
    total = sum(score for _, score in surest)
    if nearest <= 0 or total <= 0:
        return 0.0
    seen = sum(score * standing.of(cosine.get(row)) for row, score in surest) / total
    return min(1.0, max(0.0, seen / nearest))


def _surprise(standing: float) -> float:
    """Minus the logarithm of the chance that a row stands as high or higher, if rows stand normally."""
    if standing < 8:
        return -log(erfc(standing / _ROOT_OF_TWO) / 2)
    return standing * standing / 2 + log(standing * sqrt(2 * pi))
