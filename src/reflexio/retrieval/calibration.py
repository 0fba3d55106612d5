"""How far an embedder is trusted: a short test of meaning that every embedder takes once.

Scores alone do not distinguish a good embedder from one that counts letters: both give peaked lists, and the second
agrees with the words even better. So each one must choose which of two sentences means the same as a third: one
that paraphrases it, or one that shares its words and says something else.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reflexio.ports.embedding import Embedder, Vectors

_LINES = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
QUESTIONS = [line.split(" | ") for line in _LINES if " | " in line]
"""A sentence, a paraphrase, and another statement in the same words."""

# Seven of eight right give full trust: sentences are short and some turn on a single word.
PASS = 7 / 8


@dataclass(frozen=True, slots=True)
class Calibration:
    """`trust` from 0, no better than chance, to 1; `mean` and `spread` of the cosines of unrelated sentences."""

    trust: float = 1.0
    mean: float = 0.0
    spread: float = 0.15

    @property
    def noise(self) -> float:
        """A cosine that one pair of unrelated sentences in twenty reaches."""
        return self.mean + 1.64 * self.spread


UNCALIBRATED = Calibration()


async def calibrate(embedder: "Embedder") -> Calibration:
    return calibration_of(await embedder.embed([sentence for triple in QUESTIONS for sentence in triple]))


def calibration_of(vectors: "Vectors") -> Calibration:
    """The calibration from the vectors of all test sentences, in their order."""
    from numpy import eye

    sentences, paraphrases, others = vectors[0::3], vectors[1::3], vectors[2::3]
    right = ((sentences * paraphrases).sum(axis=1) > (sentences * others).sum(axis=1)).mean()
    trust = min(1.0, max(0.0, (float(right) - 0.5) / (PASS - 0.5)))
    unrelated = (sentences @ paraphrases.T)[~eye(len(sentences), dtype=bool)]
    return Calibration(trust, float(unrelated.mean()), float(unrelated.std()))
