"""How alike two playbooks of one group must be: chosen from the corpus, the same way for every corpus.

Two things differ between corpora: how alike rows are that have nothing to do with each other (in a bank everybody
speaks of cards), and how many matters there are to be confused. Both are read off the cosines of the corpus; the
cut is then where a pair is as likely to be of one matter as of two.
"""

from math import log

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]

# Rows on one matter stand, on average, half way from the background to identity.
SAME = 0.5
# A narrower background is not believed: then nearly all rows are on one matter, and that is no background.
NARROWEST = 0.3
# What is believed of background and spread before anything was seen, with the weight of so many rows.
BACKGROUND, SPREAD, WEIGHT = 0.15, 0.12, 10
TAIL, DEVIATIONS = 0.95, 1.645  # of a normal distribution


def cut(sample: Vectors, strangers: float) -> float:
    """The cosine from which rows are joined.

    The background is the median of the cosines, which one popular matter does not move. Its spread is that of its
    upper half, where matters are that resemble each other, without the pairs on one matter. With two normal
    densities of that spread, a pair is as likely on one matter as on two half way between them and, the rarer
    pairs on one matter are, the farther up: few matters are joined from farther than many. Nothing in here depends
    on the number of rows, but for the little that is believed beforehand.
    """
    cosines = np.sort((_pairs(sample) - strangers) / (1 - strangers))
    trust = len(sample) / (len(sample) + WEIGHT)
    background = min(NARROWEST, max(0.0, trust * _quantile(cosines, 0.5) + (1 - trust) * BACKGROUND))
    alike = len(cosines) - int(np.searchsorted(cosines, background + SAME * (1 - background)))
    # Of the pairs on one matter half stand above their average; never more than half of all, nor none.
    same = min(0.5, (2 * alike + 1) / (len(cosines) + 10))
    upper = (_quantile(cosines, TAIL * (1 - same)) - _quantile(cosines, 0.5 * (1 - same))) / DEVIATIONS
    spread = (trust * upper + (1 - trust) * SPREAD) / (1 - background)
    way = min(SAME, SAME / 2 + spread**2 / SAME * log((1 - same) / same))
    return strangers + (background + way * (1 - background)) * (1 - strangers)


def _pairs(sample: Vectors) -> Vectors:
    return np.asarray((sample @ sample.T)[np.triu_indices(len(sample), 1)])


def _quantile(ordered: Vectors, share: float) -> float:
    return float(ordered[int(share * (len(ordered) - 1))]) if len(ordered) else 0.0
