from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from reflexio.retrieval.calibration import QUESTIONS, calibrate, calibration_of

Rows = NDArray[np.float32]


class ByFirstLetters:
    """Knows which sentences share words, and nothing else."""

    name = "letters"
    dimensions = 512

    async def embed(self, texts: Sequence[str]) -> Rows:
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            for word in text.lower().strip(".?").split():
                vector[sum(ord(letter) * 31**place for place, letter in enumerate(word)) % 512] += 1
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))

    async def aclose(self) -> None: ...


def answers(right: int) -> Rows:
    """Vectors that answer so many questions rightly."""
    rows = []
    for number in range(len(QUESTIONS)):
        good, bad = ([1, 0], [0, 1]) if number < right else ([0, 1], [1, 0])
        rows += [[1, 0], good, bad]
    return np.array(rows, np.float32)


@pytest.mark.parametrize(("right", "grade"), [(16, 1.0), (14, 1.0), (11, 0.5), (8, 0.0), (0, 0.0)])
def test_the_grade_is_what_is_better_than_chance(right: int, grade: float) -> None:
    assert calibration_of(answers(right)).trust == pytest.approx(grade)


async def test_an_embedder_that_only_compares_words_fails() -> None:
    assert (await calibrate(ByFirstLetters())).trust == 0


def test_answers_share_no_telling_word_with_their_question() -> None:
    for sentence, same, other in QUESTIONS:
        telling = {word for word in sentence.lower().strip(".?").split() if len(word) > 4}
        assert not telling & set(same.lower().strip(".?").split())
        assert set(sentence.lower().strip(".?").split()) & set(other.lower().strip(".?").split())
