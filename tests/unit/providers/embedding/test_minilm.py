from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from reflexio.providers.embedding.local import MODEL, ForwardPass
from reflexio.providers.embedding.minilm import MiniLM
from reflexio.providers.embedding.minilm_onnx import OnnxMiniLM
from tests.unit.providers.embedding.golden import Golden, golden

REFERENCES = [reference for reference in golden() if reference.vector]


@pytest.fixture(scope="module", params=["numpy", "onnxruntime"])
def model(request: pytest.FixtureRequest) -> ForwardPass:
    if request.param == "onnxruntime":
        pytest.importorskip("onnxruntime")
        return OnnxMiniLM.load(MODEL / "weights.npz")
    return MiniLM.load(MODEL / "weights.npz")


@pytest.mark.parametrize("reference", REFERENCES, ids=lambda reference: repr(reference.text[:20]))
def test_vectors_are_those_of_the_float_model(model: ForwardPass, reference: Golden) -> None:
    cosine = model.vectors([reference.ids])[0] @ np.array(reference.vector)
    assert cosine > 0.999


def test_a_text_has_the_same_vector_alone_and_beside_longer_ones(model: ForwardPass) -> None:
    together = model.vectors([reference.ids for reference in REFERENCES])
    alone = np.concatenate([model.vectors([reference.ids]) for reference in REFERENCES])
    np.testing.assert_allclose(together, alone, atol=2e-6)


def test_vectors_are_float32_of_length_one(model: ForwardPass) -> None:
    vectors = model.vectors([reference.ids for reference in REFERENCES])
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_both_runtimes_give_the_same_vectors() -> None:
    pytest.importorskip("onnxruntime")
    fast, plain = OnnxMiniLM.load(MODEL / "weights.npz"), MiniLM.load(MODEL / "weights.npz")
    batches = [[reference.ids] for reference in REFERENCES] + [[reference.ids for reference in REFERENCES]]
    for batch in batches:
        np.testing.assert_allclose(fast.vectors(batch), plain.vectors(batch), atol=1e-4)


def test_one_session_serves_several_threads_at_once() -> None:
    pytest.importorskip("onnxruntime")
    model = OnnxMiniLM.load(MODEL / "weights.npz")
    batches = [[reference.ids] for reference in REFERENCES] * 8
    alone = [model.vectors(batch) for batch in batches]
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(model.vectors, batches))
    np.testing.assert_array_equal(np.concatenate(together), np.concatenate(alone))
