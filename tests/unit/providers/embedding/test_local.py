import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from threading import Thread, current_thread, main_thread

import pytest

from reflexio.providers.embedding import local
from reflexio.providers.embedding.local import LocalEmbedder, PriorityThreadPool
from reflexio.providers.embedding.minilm import MiniLM


@pytest.fixture
async def embedder() -> AsyncIterator[LocalEmbedder]:
    embedder = LocalEmbedder()
    yield embedder
    await embedder.aclose()


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Thread]]:
    """The threads that loaded the model, with nothing loaded at first."""
    threads: list[Thread] = []
    load = MiniLM.load

    def recorded(path: Path) -> MiniLM:
        threads.append(current_thread())
        return load(path)

    monkeypatch.setattr(local, "find_spec", lambda name: None)
    monkeypatch.setattr(MiniLM, "load", recorded)
    local._model.cache_clear()
    yield threads
    local._model.cache_clear()


async def test_nothing_is_loaded_until_the_first_call(loads: list[Thread]) -> None:
    await LocalEmbedder().aclose()
    assert loads == []


async def test_the_model_is_loaded_once_and_off_the_event_loop(loads: list[Thread]) -> None:
    first, second = LocalEmbedder(), LocalEmbedder()
    await asyncio.gather(*(embedder.embed([text]) for embedder in (first, second) for text in ("tea", "cup")))
    await asyncio.gather(first.aclose(), second.aclose())
    assert len(loads) == 1
    assert loads[0] is not main_thread()


async def test_a_query_is_answered_while_an_import_runs_even_on_one_thread(embedder: LocalEmbedder) -> None:
    embedder._pool.close()
    embedder._pool = PriorityThreadPool("one", threads=1)
    await embedder.embed(["warm"])
    a_large_import = asyncio.create_task(embedder.embed([f"sentence number {number}" for number in range(400)]))
    await embedder.embed(["one batch may be ahead"])
    await embedder.embed(["but not the import"])
    assert not a_large_import.done()
    a_large_import.cancel()


async def test_batches_hold_texts_of_similar_length_within_the_token_limit() -> None:
    texts = ["tea " * (number % 60) for number in range(200)]
    batches = list(local._batches(texts))
    assert sorted(place for places, _ in batches for place in places) == list(range(200))
    assert all(len(ids) * max(map(len, ids)) <= local.BATCH_TOKENS for _, ids in batches)
    padding = sum(len(ids) * max(map(len, ids)) - sum(map(len, ids)) for _, ids in batches)
    assert padding < 0.05 * sum(len(one) for _, ids in batches for one in ids)


async def test_related_texts_are_near_and_unrelated_ones_far(embedder: LocalEmbedder) -> None:
    query, near, far = await embedder.embed(
        ["Which drink does she like?", "Her favourite beverage is green tea.", "The server restarts at midnight."]
    )
    assert query @ near > 0.4
    assert query @ far < 0.2


@pytest.fixture
def unloaded() -> Iterator[None]:
    local._model.cache_clear()
    yield
    local._model.cache_clear()


async def embed_once() -> tuple[str, str]:
    """What the embedder says it uses before and after its first text."""
    embedder = LocalEmbedder()
    before = embedder.runtime
    await embedder.embed(["tea"])
    await embedder.aclose()
    return before, embedder.runtime


@pytest.mark.usefixtures("unloaded")
async def test_onnxruntime_is_used_where_it_is_installed() -> None:
    pytest.importorskip("onnxruntime")
    assert await embed_once() == ("onnxruntime", "onnxruntime")


@pytest.mark.usefixtures("unloaded")
async def test_numpy_is_used_where_onnxruntime_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "find_spec", lambda name: None)
    assert await embed_once() == ("numpy", "numpy")


@pytest.mark.usefixtures("unloaded")
@pytest.mark.parametrize("fault", [ImportError("no GLIBC_2.99"), OSError("wrong ELF class"), AttributeError("x")])
async def test_numpy_is_used_where_onnxruntime_does_not_work(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, fault: Exception
) -> None:
    def fail(path: Path) -> MiniLM:
        raise fault

    monkeypatch.setattr(local, "find_spec", lambda name: object())
    monkeypatch.setattr("reflexio.providers.embedding.minilm_onnx.OnnxMiniLM.load", fail)
    assert await embed_once() == ("onnxruntime", "numpy")
    assert str(fault) in caplog.text
