import json
import socket
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pytest

from reflexio.errors import ProviderError, ProviderRefused, ProviderUnavailable
from reflexio.providers.embedding.openai import READ_BYTES, EmbeddingModel, OpenAIEmbedder
from tests.contract.endpoint import Answer, Endpoint, endpoint, well_behaved

MODEL = EmbeddingModel("loopback", 64)


async def embed(served: Endpoint, *texts: str, model: EmbeddingModel = MODEL, api_key: str = "") -> Any:
    embedder = OpenAIEmbedder(model, api_key=api_key, base_url=served.url)
    try:
        return await embedder.embed(texts)
    finally:
        await embedder.aclose()


def replying(status: int, content: object) -> AbstractContextManager[Endpoint]:
    encoded = content if isinstance(content, bytes) else json.dumps(content).encode()
    return endpoint(lambda _: (status, encoded))


def rows(*vectors: list[Any]) -> dict[str, Any]:
    return {"data": [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)]}


async def test_the_request_carries_model_key_and_texts() -> None:
    with endpoint() as served:
        await embed(served, "tea", "cup", api_key="secret")
    assert served.bodies == [
        {"path": "/v1/embeddings", "model": "loopback", "input": ["tea", "cup"], "encoding_format": "float"}
    ]
    assert served.headers[0]["authorization"] == "Bearer secret"


async def test_without_a_key_none_is_sent() -> None:
    with endpoint() as served:
        await embed(served, "tea")
    assert "authorization" not in served.headers[0]


async def test_shorter_vectors_are_requested_only_when_configured() -> None:
    def short(body: dict[str, Any]) -> Answer:
        return well_behaved(body, dimensions=8)

    with endpoint(short) as served:
        assert (await embed(served, "tea", model=EmbeddingModel("loopback", 8, shortened=True))).shape == (1, 8)
    assert served.bodies[0]["dimensions"] == 8


async def test_many_texts_go_in_several_requests() -> None:
    with endpoint() as served:
        assert (await embed(served, *(f"tea {number}" for number in range(300)))).shape == (300, 64)
    assert [len(body["input"]) for body in served.bodies] == [128, 128, 44]


async def test_blank_texts_are_not_sent() -> None:
    with endpoint() as served:
        vectors = await embed(served, "", "tea", "  ")
    assert served.bodies[0]["input"] == ["tea"]
    np.testing.assert_array_equal(vectors[0], vectors[2])


async def test_long_texts_are_cut_and_lone_surrogates_replaced() -> None:
    with endpoint() as served:
        await embed(served, "茶" * 1_000_000, "a\ud800b")
    long, mended = served.bodies[0]["input"]
    assert READ_BYTES - 3 < len(long.encode()) <= READ_BYTES
    assert mended == "a?b"


@pytest.mark.parametrize(
    ("status", "content", "expected"),
    [
        (401, "bad key", ProviderRefused),
        (402, "pay", ProviderRefused),
        (403, "no", ProviderRefused),
        (429, {"error": {"code": "insufficient_quota"}}, ProviderRefused),
        (429, {"error": {"code": "rate_limit_exceeded"}}, ProviderUnavailable),
        (429, "Too many requests; pay more at /account/billing for a higher limit.", ProviderUnavailable),
        (408, "late", ProviderUnavailable),
        (500, "oops", ProviderUnavailable),
        (503, "busy", ProviderUnavailable),
        (400, "bad", ProviderError),
        (404, "no such model", ProviderError),
        (302, "", ProviderError),
    ],
)
async def test_the_status_says_who_must_act(status: int, content: object, expected: type[ProviderError]) -> None:
    with replying(status, content) as served, pytest.raises(ProviderError) as raised:
        await embed(served, "tea")
    assert type(raised.value) is expected
    assert f"HTTP {status}" in str(raised.value)


@pytest.mark.parametrize(
    "content",
    [
        b"<html>",
        b"\xff\xfe",
        [],
        {},
        {"data": None},
        {"data": []},
        {"data": [[1.0] * 64]},
        {"data": [{"index": 0}]},
        {"data": [{"embedding": [1.0] * 64}]},
        {"data": [{"index": "first", "embedding": [1.0] * 64}]},
        {"data": [{"index": 1, "embedding": [1.0] * 64}]},
        rows([1.0] * 63),
        rows([1.0] * 64, [1.0] * 64),
        rows([]),
        rows([[1.0] * 64]),
        rows(["tea"] * 64),
        rows([None] * 64),
        rows([0.0] * 64),
        rows([float("nan"), *[1.0] * 63]),
        rows([float("inf"), *[1.0] * 63]),
    ],
    ids=lambda content: json.dumps(content)[:40] if not isinstance(content, bytes) else repr(content),
)
async def test_an_answer_that_is_not_a_set_of_vectors_is_an_error(content: object) -> None:
    with replying(200, content) as served, pytest.raises(ProviderError) as raised:
        await embed(served, "tea")
    assert type(raised.value) is ProviderError


@pytest.mark.parametrize("large", [1e300, 1e-300])
async def test_numbers_of_any_magnitude_are_normalised(large: float) -> None:
    with replying(200, rows([large] * 64)) as served:
        np.testing.assert_allclose(await embed(served, "tea"), 1 / 8, rtol=1e-6)


async def test_a_closed_port_is_provider_unavailable() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nobody = Endpoint(f"http://127.0.0.1:{unused.getsockname()[1]}/v1", well_behaved)
        with pytest.raises(ProviderUnavailable):
            await embed(nobody, "tea")


async def test_a_timeout_is_provider_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reflexio.providers.embedding.openai.TIMEOUT", 0.05)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises(ProviderUnavailable, match="Timeout"):
            await embed(Endpoint(f"http://127.0.0.1:{silent.getsockname()[1]}/v1", well_behaved), "tea")
