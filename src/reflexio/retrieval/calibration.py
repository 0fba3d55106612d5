"""How far an embedder is trusted: a short test of meaning that every embedder takes once.

Scores alone do not distinguish a good embedder from one that counts letters: both give peaked lists, and the second
agrees with the words even better. So each one must choose which of two sentences means the same as a third: one
that paraphrases it, or one that shares its words and says something else.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reflexio.ports.embedding import Embedder, Vectors

# A sentence, a paraphrase, and another statement in the same words.
QUESTIONS = (
    ("I cannot eat peanuts.", "He is allergic to nuts.", "I eat lunch at my desk, but I cannot cook."),
    ("When does my flight leave?", "The plane departs at nine.", "When does my lease let me leave?"),
    ("She adores puppies.", "Dogs make her happy.", "She adores operas."),
    ("The payment was declined.", "My card got rejected at checkout.", "The payment terms were on page two."),
    (
        "Please cancel my subscription.",
        "I want to stop being billed every month.",
        "Please print my name in bold.",
    ),
    (
        "The app crashes on start.",
        "It stops working as soon as I open the program.",
        "The app starts the dishwasher.",
    ),
    (
        "Where can I find a doctor?",
        "A clinic with physicians is around the corner.",
        "Where can I find a hammer?",
    ),
    (
        "I prefer trains to flying.",
        "Going by rail suits me better than by air.",
        "I prefer white wine to beer.",
    ),
    ("He lost his job.", "The company laid him off.", "He lost his umbrella."),
    ("My password does not work.", "I am locked out of my account.", "My fridge does not work."),
    (
        "How cold will it be tomorrow?",
        "The weather forecast says frost.",
        "How long will it be on stage tomorrow?",
    ),
    ("They bought a house.", "The couple purchased a new home.", "They bought a newspaper."),
    ("Send the parcel back.", "Return the package to the shop.", "Send the chair back to its row."),
    (
        "She is learning the violin.",
        "Her music lessons on a string instrument go well.",
        "She is learning to swim.",
    ),
    ("Sort the list of numbers.", "Put the integers in ascending order.", "Sort the laundry of the guests."),
    (
        "The meeting was postponed.",
        "We will gather at a later date instead.",
        "The meeting was in the blue room.",
    ),
)


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
