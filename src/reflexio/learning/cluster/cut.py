"""How alike two playbooks of one group must be: chosen from the corpus, the same way for every corpus.

Two things differ between corpora: how alike rows are that have nothing to do with each other (in a bank everybody
speaks of cards), and how many matters there are to be confused. Both are read off the cosines of the corpus; the
cut is then where a pair is as likely to be of one matter as of two.
"""

from math import log

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]

# Rows on one matter stand, on average, this far of the way from the background to identity.
SAME = 0.56
# A narrower background is not believed: then nearly all rows are on one matter, and that is no background.
NARROWEST = 0.3
# What is believed before anything was seen, with the weight of some rows.
BACKGROUND, SPREAD, WEIGHT = 0.15, 0.12, 10


def cut(sample: Vectors, strangers: float) -> float:
    """The cosine from which rows are joined.

    The background is the median of the cosines, so that one popular matter does not move it, and its spread is
    that of the lower half, where there are no pairs on one matter. A pair is as likely on one as on two where the
    two densities, taken as equally wide, are in the proportion of how common such pairs are: few matters are
    joined from farther than many. Nothing in here depends on the number of rows, but for the little that is
    believed beforehand.
    """
    cosines = (_pairs(sample) - strangers) / (1 - strangers)
    trust = len(sample) / (len(sample) + WEIGHT)
    low, middle = np.quantile(cosines, [0.16, 0.5]).tolist() if len(cosines) else (0.0, 0.0)
    background = min(NARROWEST, max(0.0, trust * middle + (1 - trust) * BACKGROUND))
    spread = (trust * (middle - low) + (1 - trust) * SPREAD) / (1 - background)
    odds = _odds(int((cosines > background + SAME * (1 - background)).sum()), len(cosines))
    way = SAME / 2 + spread**2 / SAME * log(odds)
    inside = background + min(way, 1.0) * (1 - background)
    return strangers + inside * (1 - strangers)


def _pairs(sample: Vectors) -> Vectors:
    return np.asarray((sample @ sample.T)[np.triu_indices(len(sample), 1)])


def _odds(alike: int, pairs: int) -> float:
    """Pairs on two matters for each on one. Half of those on one matter stand above their average: `alike`."""
    same = min(0.5, (2 * alike + 1) / (pairs + 10))
    return (1 - same) / same
