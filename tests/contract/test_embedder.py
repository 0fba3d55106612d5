"""The contract of every embedder."""

import asyncio
from collections.abc import AsyncIterator
from functools import lru_cache

import numpy as np
import pytest

from reflexio.ports.embedding import Embedder
from reflexio.providers.embedding import local
from reflexio.providers.embedding.cached import CachedEmbedder
from reflexio.providers.embedding.minilm import MiniLM
from reflexio.providers.embedding.resolve import resolve
from reflexio.providers.scripted import ScriptedEmbedder
from tests.contract.endpoint import endpoint


@lru_cache(maxsize=1)
def _numpy_model() -> MiniLM:
    return MiniLM.load(local.MODEL / "weights.npz")


@pytest.fixture(params=["local on onnxruntime", "local on numpy", "scripted", "openai", "cached"])
async def embedder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Embedder]:
    if request.param == "local on onnxruntime":
        pytest.importorskip("onnxruntime")
    model = _numpy_model if request.param == "local on numpy" else local._model
    monkeypatch.setattr(local, "_model", model)
    with endpoint() as served:
        embedders: dict[str, Embedder] = {
            "local on onnxruntime": resolve("local"),
            "local on numpy": resolve("local"),
            "scripted": ScriptedEmbedder(),
            "openai": resolve("openai:loopback@64", base_url=served.url),
            "cached": CachedEmbedder(ScriptedEmbedder()),
        }
        yield embedders[request.param]
        for opened in embedders.values():
            await opened.aclose()


@pytest.mark.parametrize(
    "text",
    [
        "I like green tea.",
        "",
        " \n\t",
        "\x00",
        "🫖 茶 чай",
        "lone \ud800 surrogate",
        "\udfff",
        "tea " * 250_000,
        "x" * 1_000_000,
    ],
    ids=["plain", "empty", "blank", "nul", "scripts", "surrogate", "only surrogate", "megabyte", "megaword"],
)
async def test_any_text_becomes_one_unit_vector(embedder: Embedder, text: str) -> None:
    vectors = await embedder.embed([text])
    assert vectors.shape == (1, embedder.dimensions)
    assert vectors.dtype == np.float32
    assert np.isfinite(vectors).all()
    assert np.linalg.norm(vectors[0]) == pytest.approx(1, abs=1e-5)


async def test_rows_come_in_the_order_of_the_texts(embedder: Embedder) -> None:
    texts = [f"{'tea and ' * (number % 7)} cup {number}" for number in range(300)]
    texts[5] = ""
    together = await embedder.embed(texts)
    assert together.shape == (300, embedder.dimensions)
    for place in (0, 5, 6, 150, 299):
        np.testing.assert_allclose(together[place], (await embedder.embed([texts[place]]))[0], atol=1e-5)


async def test_no_texts_give_no_rows(embedder: Embedder) -> None:
    assert (await embedder.embed([])).shape == (0, embedder.dimensions)


async def test_concurrent_callers_get_their_own_vectors(embedder: Embedder) -> None:
    texts = [f"tea {number}" for number in range(20)]
    together = await embedder.embed(texts)
    separate = await asyncio.gather(*(embedder.embed([text]) for text in texts))
    np.testing.assert_allclose(np.concatenate(separate), together, atol=1e-5)


async def test_similar_texts_are_nearer_than_others(embedder: Embedder) -> None:
    tea, more_tea, other = await embedder.embed(["green tea please", "some green tea", "restart that server"])
    assert tea @ more_tea > tea @ other + 0.2


async def test_the_name_says_provider_and_model(embedder: Embedder) -> None:
    provider, _, model = embedder.name.partition(":")
    assert provider
    assert model
