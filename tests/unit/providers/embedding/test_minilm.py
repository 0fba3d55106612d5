import numpy as np
import pytest

from reflexio.providers.embedding.local import MODEL
from reflexio.providers.embedding.minilm import MiniLM
from tests.unit.providers.embedding.golden import Golden, golden

REFERENCES = [reference for reference in golden() if reference.vector]


@pytest.fixture(scope="module")
def model() -> MiniLM:
    return MiniLM.load(MODEL / "weights.npz")


@pytest.mark.parametrize("reference", REFERENCES, ids=lambda reference: repr(reference.text[:20]))
def test_vectors_are_those_of_the_float_model(model: MiniLM, reference: Golden) -> None:
    cosine = model.vectors([reference.ids])[0] @ np.array(reference.vector)
    assert cosine > 0.999


def test_a_text_has_the_same_vector_alone_and_beside_longer_ones(model: MiniLM) -> None:
    together = model.vectors([reference.ids for reference in REFERENCES])
    alone = np.concatenate([model.vectors([reference.ids]) for reference in REFERENCES])
    np.testing.assert_allclose(together, alone, atol=2e-6)


def test_vectors_are_float32_of_length_one(model: MiniLM) -> None:
    vectors = model.vectors([reference.ids for reference in REFERENCES])
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
