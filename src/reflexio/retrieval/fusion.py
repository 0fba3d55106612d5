"""One ranking from two: what the words say and what the vectors say, added up as evidence.

Both are put in one unit, how unlikely a row is to score that well by chance (in nats). For words that is what
BM25 already adds up, as long as the query is short; a long one shares words with every row, and there the
spread of the scores is the unit. For vectors it is the tail of the similarities among the searched rows, so
that neither the range of an embedder's scores nor the number of rows matters. In long conversations words
are the stronger evidence, among a few one-sentence memories the vectors are, and nobody has to say which.

How much the vectors count is decided anew for every query: by the embedder's grade in the exam, by whether it
tells the searched rows apart, by how much of the query the words leave open, and by whether the words see
anything in the rows that the vectors put first. A row that stands out as chance cannot explain is always heard.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import erfc, exp, log, pi, sqrt
from operator import itemgetter
from typing import Literal, NamedTuple

# Even an embedder that failed the exam may break a tie between rows that the words hold equal.
LEAST_WEIGHT = 0.05
# An embedder that cannot read a language, or rows made after one pattern, finds all of them near and hardly
# different. Below this share of difference in what they have in common it is believed less, and soon not at all.
TOLD_APART = 0.28
# The nearest rows, by which it is judged whether the words see what the vectors see.
NEAREST = 3
# Where the words see less in these than this share of what they see in their own best row, the two contradict.
VOUCHED = 0.7
# A best row by words that holds less of the query than this found it by chance, as in a long or chatty query.
LITTLE, MOST_WEIGHT = 0.3, 2.0
# Nats by which the nearest row stands before the next, by chance: exponential, so that one query in fifty has more.
CHANCE_LEAD = 4.0
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
        if self.vector_score is None and self.vector_evidence:
            return f"{words} + {self.vector_evidence:.1f} as an average row (no vector)"
        if self.vector_score is None:
            return f"{words}, no vector"
        return f"{words} + vectors {self.vector_evidence:.1f} (cosine {self.vector_score:.2f})"


@dataclass(frozen=True, slots=True)
class Fused:
    """Hits, best first, and the weight that the vectors were given."""

    hits: tuple[Hit, ...]
    vector_weight: float


def fuse(words: ByWords, vectors: ByVectors, *, trust: float = 1.0, strangers: float | None = None) -> Fused:
    """Rank all rows of both by the sum of their evidence; equals by cosine, then by age.

    `trust` is the embedder's grade in the exam and `strangers` the mean cosine of unrelated sentences there,
    None while it is unknown. Either side may be empty: then the other decides alone.
    """
    cosine = dict(zip(vectors.ids, vectors.scores, strict=True))
    standing = _Standing(vectors.mean, vectors.spread)
    rank = {row: (place, score) for place, (row, score) in enumerate(zip(words.ids, words.scores, strict=True), 1)}
    weight = 0.0
    if cosine:
        best = sorted(cosine.items(), key=itemgetter(1), reverse=True)[:NEAREST]
        nearest = [_Near(standing.of(near), *rank.get(row, (None, 0.0))) for row, near in best]
        weight = _weight(words, nearest, standing, trust, strangers)
    unit = max(1.0, words.spread)
    placed = []
    for row in rank.keys() | cosine.keys():
        place, score = rank.get(row, (None, 0.0))
        near = cosine.get(row)
        by_words = score / unit
        by_vector = weight * _surprise(standing.of(near))
        total = by_words + by_vector
        hit = Hit(row, total, place, score, by_words, near, by_vector)
        placed.append((-total, 2.0 if near is None else -near, row, hit))
    placed.sort()
    return Fused(tuple([each[3] for each in placed]), weight)


@dataclass(frozen=True, slots=True)
class _Standing:
    mean: float
    spread: float

    def of(self, cosine: float | None) -> float:
        """How many spreads above the mean; an unknown row, or one among equals, is average."""
        return 0.0 if cosine is None or self.spread <= 1e-6 else (cosine - self.mean) / self.spread


class _Near(NamedTuple):
    """One of the nearest rows: how it stands, and its rank and score by words."""

    high: float
    words_rank: int | None
    words_score: float


def _weight(
    words: ByWords, nearest: Sequence[_Near], standing: _Standing, trust: float, strangers: float | None
) -> float:
    passed = min(1.0, max(0.0, trust))
    lead = _lead(words, nearest)
    examined = LEAST_WEIGHT + (1 - LEAST_WEIGHT) * passed
    grade = max(examined * _told_apart(standing, strangers), lead)
    if not len(words.ids):
        return grade
    covered = min(1.0, max(0.0, words.coverage[0]))
    # A row that holds nearly all of the query leaves nothing to guess. To the fourth power, because one that
    # holds half of it leaves nearly everything to guess.
    left_open = (1 - covered**4) * (1 + (_little(covered) - 1) * passed)
    contradicted = 1.5 * covered * max(0.0, VOUCHED - _vouched(words, nearest))
    return grade * max(left_open * max(0.0, 1 - contradicted), lead / 2)


def _lead(words: ByWords, nearest: Sequence[_Near]) -> float:
    """How sure it is, from 0 to 1, that the nearest row is not there by chance, nor for its words."""
    if len(nearest) < 2:
        return 0.0
    first, second = nearest[:2]
    beyond = _surprise(first.high) - _surprise(second.high) - CHANCE_LEAD
    held = words.coverage[first.words_rank - 1] if first.words_rank else 0.0
    return (1 - exp(-beyond)) * (1 - min(1.0, max(0.0, held))) if beyond > 0 else 0.0


def _told_apart(standing: _Standing, strangers: float | None) -> float:
    """From 1, the rows differ for the embedder, to 0, all are the same to it."""
    common = 0.0 if strangers is None else standing.mean - strangers
    if standing.spread >= TOLD_APART * common:
        return 1.0
    return (standing.spread / (TOLD_APART * common)) ** 6


def _little(covered: float) -> float:
    """How many times more the vectors count because the words found next to nothing of the query."""
    return min(MOST_WEIGHT, (LITTLE / covered) ** 0.25) if 0 < covered < LITTLE else 1.0


def _vouched(words: ByWords, nearest: Sequence[_Near]) -> float:
    """What the words see in the nearest rows, as a share of what they see in their best."""
    total = sum(max(0.0, near.high) for near in nearest) * words.scores[0]
    seen = sum(max(0.0, near.high) * near.words_score for near in nearest)
    return min(1.0, seen / total) if total > 0 else 0.0


def _surprise(standing: float) -> float:
    """Minus the logarithm of the chance that a row stands as high or higher, if rows stand normally."""
    if standing < 8:
        return -log(erfc(standing / _ROOT_OF_TWO) / 2)
    return standing * standing / 2 + log(standing * sqrt(2 * pi))
