"""One ranking from two: the evidence of the words and the evidence of the vectors, added up.

Both are measured in nats: how unlikely a row is to score that well by chance. For words that is what BM25 already
adds up, as long as the query is short; a long query shares words with every row, and there the spread of the scores
is the unit. For vectors it is the tail of the similarities among the searched rows, so that neither the range of an
embedder's scores nor the number of rows matters. In long conversations words are the stronger evidence, among a few
one-sentence memories the vectors are; nobody has to configure which.

The weight of the vectors is computed for every query: from the embedder's calibration, from whether it distinguishes
the searched rows, from how much of the query the words leave open, and from whether the words support the rows that
the vectors put first. A row whose cosine chance cannot explain always counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import erfc, exp, log, pi, sqrt
from operator import itemgetter
from typing import Literal, NamedTuple

# Even an embedder that failed its calibration may break a tie between rows that the words hold equal.
LEAST_WEIGHT = 0.05
# An embedder that cannot read a language, or rows made after one pattern, finds all of them near and hardly
# different. Below this share of difference in what they have in common it is believed less, and soon not at all.
LEAST_DIFFERENCE = 0.28
# The nearest rows, which show whether the words support the vectors.
NEAREST = 3
# Where the words score these rows lower than this share of their own best row, the two contradict.
LEAST_SUPPORT = 0.7
# A best row by words that contains less of the query than this was found by chance, as in a long or chatty query.
LOW_COVERAGE, MOST_WEIGHT = 0.3, 2.0
# Nats by which the nearest row stands before the next, by chance: exponential, so that one query in fifty has more.
CHANCE_LEAD = 4.0
_SQRT_2 = sqrt(2)


@dataclass(frozen=True, slots=True)
class ByWords:
    """Rows found by words, best first: BM25 scores, and the share of the query that each row contains.

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
    """A row, its total evidence, and the parts of it."""

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


def fuse(words: ByWords, vectors: ByVectors, *, trust: float = 1.0, unrelated: float | None = None) -> Fused:
    """Ranks all rows of both by the sum of their evidence; ties by cosine, then by age.

    `trust` comes from the embedder's calibration, and so does `unrelated`, the mean cosine of unrelated sentences,
    which is None while it is unknown. Either side may be empty: then the other decides alone.
    """
    cosine = dict(zip(vectors.ids, vectors.scores, strict=True))
    cosines = _Distribution(vectors.mean, vectors.spread)
    rank = {row: (place, score) for place, (row, score) in enumerate(zip(words.ids, words.scores, strict=True), 1)}
    weight = 0.0
    if cosine:
        best = sorted(cosine.items(), key=itemgetter(1), reverse=True)[:NEAREST]
        nearest = [_NearestRow(cosines.z_score(near), *rank.get(row, (None, 0.0))) for row, near in best]
        weight = _weight(words, nearest, cosines, trust, unrelated)
    unit = max(1.0, words.spread)
    ranked = []
    for row in rank.keys() | cosine.keys():
        place, score = rank.get(row, (None, 0.0))
        near = cosine.get(row)
        by_words = score / unit
        by_vector = weight * _surprise(cosines.z_score(near))
        total = by_words + by_vector
        hit = Hit(row, total, place, score, by_words, near, by_vector)
        ranked.append((-total, 2.0 if near is None else -near, row, hit))
    ranked.sort()
    return Fused(tuple([entry[3] for entry in ranked]), weight)


@dataclass(frozen=True, slots=True)
class _Distribution:
    mean: float
    spread: float

    def z_score(self, cosine: float | None) -> float:
        """How many spreads above the mean; a row without a vector, or one among equals, is average."""
        return 0.0 if cosine is None or self.spread <= 1e-6 else (cosine - self.mean) / self.spread


class _NearestRow(NamedTuple):
    """One of the nearest rows: its z-score, and its rank and score by words."""

    z_score: float
    words_rank: int | None
    words_score: float


def _weight(
    words: ByWords, nearest: Sequence[_NearestRow], cosines: _Distribution, trust: float, unrelated: float | None
) -> float:
    trusted = min(1.0, max(0.0, trust))
    lead = _lead(words, nearest)
    least = LEAST_WEIGHT + (1 - LEAST_WEIGHT) * trusted
    reliability = max(least * _discrimination(cosines, unrelated), lead)
    if not len(words.ids):
        return reliability
    covered = min(1.0, max(0.0, words.coverage[0]))
    # A row that contains nearly all of the query leaves nothing open. To the fourth power, because one that
    # contains half of it leaves nearly everything open.
    left_open = (1 - covered**4) * (1 + (_low_coverage_factor(covered) - 1) * trusted)
    contradicted = 1.5 * covered * max(0.0, LEAST_SUPPORT - _word_support(words, nearest))
    return reliability * max(left_open * max(0.0, 1 - contradicted), lead / 2)


def _lead(words: ByWords, nearest: Sequence[_NearestRow]) -> float:
    """How sure it is, from 0 to 1, that the nearest row is not there by chance, nor for its words."""
    if len(nearest) < 2:
        return 0.0
    first, second = nearest[:2]
    beyond = _surprise(first.z_score) - _surprise(second.z_score) - CHANCE_LEAD
    held = words.coverage[first.words_rank - 1] if first.words_rank else 0.0
    return (1 - exp(-beyond)) * (1 - min(1.0, max(0.0, held))) if beyond > 0 else 0.0


def _discrimination(cosines: _Distribution, unrelated: float | None) -> float:
    """From 1, the embedder distinguishes the rows, to 0, all are the same to it."""
    common = 0.0 if unrelated is None else cosines.mean - unrelated
    if cosines.spread >= LEAST_DIFFERENCE * common:
        return 1.0
    return (cosines.spread / (LEAST_DIFFERENCE * common)) ** 6


def _low_coverage_factor(covered: float) -> float:
    """How many times more the vectors count because the words cover next to nothing of the query."""
    return min(MOST_WEIGHT, (LOW_COVERAGE / covered) ** 0.25) if 0 < covered < LOW_COVERAGE else 1.0


def _word_support(words: ByWords, nearest: Sequence[_NearestRow]) -> float:
    """The words' score of the nearest rows, as a share of their best score."""
    total = sum(max(0.0, near.z_score) for near in nearest) * words.scores[0]
    seen = sum(max(0.0, near.z_score) * near.words_score for near in nearest)
    return min(1.0, seen / total) if total > 0 else 0.0


def _surprise(z_score: float) -> float:
    """Minus the logarithm of the chance of such a z-score or a higher one, in a normal distribution."""
    if z_score < 8:
        return -log(erfc(z_score / _SQRT_2) / 2)
    return z_score * z_score / 2 + log(z_score * sqrt(2 * pi))
