import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reflexio.agents.vectors import memory
from reflexio.agents.vectors.embedding import embedder
from reflexio.agents.vectors.memory import InMemoryVectorStore
from reflexio.agents.vectors.memory import nearest as find_nearest
from reflexio.agents.vectors.store import Chunk
from reflexio.errors import InvalidRequest
from reflexio.providers.scripted import ScriptedEmbedder


async def test_texts_become_a_store() -> None:
    store = await InMemoryVectorStore.from_texts(
        ["green tea", "a bicycle"], ScriptedEmbedder(), metadatas=[{"n": 1}, {"n": 2}]
    )
    (hit,) = await store.search("tea", k=1)
    assert hit.chunk == Chunk("green tea", {"n": 1})
    with pytest.raises(ValueError, match="shorter"):
        await InMemoryVectorStore.from_texts(["a", "b"], ScriptedEmbedder(), metadatas=[{}])


async def test_the_default_embedder_is_the_local_one() -> None:
    assert InMemoryVectorStore().embedder.name == embedder("local").name == "local:all-MiniLM-L6-v2"


async def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    store = await InMemoryVectorStore.from_texts(["green tea", "a bicycle"], ScriptedEmbedder())
    (gone,) = await store.add([Chunk("gone")])
    await store.delete([gone])
    await store.save(tmp_path / "store.npz")
    await store.save(tmp_path / "store.npz")
    again = await InMemoryVectorStore.load(tmp_path / "store.npz", ScriptedEmbedder())
    assert await again.search("tea") == await store.search("tea")
    assert [each.name for each in tmp_path.iterdir()] == ["store.npz"]  # noqa: ASYNC240


async def test_an_empty_store_is_saved_and_loaded(tmp_path: Path) -> None:
    await InMemoryVectorStore(ScriptedEmbedder()).save(tmp_path / "empty")
    assert await (await InMemoryVectorStore.load(tmp_path / "empty", ScriptedEmbedder())).count() == 0


async def test_another_embedder_cannot_load_it(tmp_path: Path) -> None:
    await InMemoryVectorStore(ScriptedEmbedder()).save(tmp_path / "store")
    with pytest.raises(InvalidRequest, match=r"embedded by 'scripted:words'; 'other'"):
        await InMemoryVectorStore.load(tmp_path / "store", ScriptedEmbedder(name="other"))


async def test_a_file_that_is_missing_or_cannot_be_written_says_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"no saved vector store at .*store\.npz.*create an empty"):
        await InMemoryVectorStore.load(tmp_path / "store.npz", ScriptedEmbedder())
    with pytest.raises(InvalidRequest, match=r"saved vector store .* cannot be read: Is a directory"):
        await InMemoryVectorStore.load(tmp_path, ScriptedEmbedder())
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "nowhere" / "store", tmp_path / "file" / "store", tmp_path):
        with pytest.raises(InvalidRequest, match=r"cannot be saved to .* existing folder"):
            await InMemoryVectorStore(ScriptedEmbedder()).save(path)


async def test_words_find_what_an_embedder_blurs() -> None:
    texts = ["Order A-17 is late.", "Order B-18 is late.", "The late order of a customer", "Bicycles"]
    store = await InMemoryVectorStore.from_texts(
        texts, ScriptedEmbedder(), metadatas=[{"user": "ada"}, {"user": "ada"}, {"user": "bob"}, {"user": "ada"}]
    )
    hits = await store.search_hybrid("b-18", k=1, filter={"user": "ada"}, alpha=0.0)
    assert [hit.chunk.content for hit in hits] == ["Order B-18 is late."]
    (gone,) = [hit.id for hit in hits]
    await store.delete([gone])
    assert await store.search_hybrid("18", alpha=0.0) == []
    by_meaning = await store.search("late order", k=3)
    assert [hit.id for hit in await store.search_hybrid("late order", k=3, alpha=1.0)] == [hit.id for hit in by_meaning]
    assert {hit.chunk.metadata["user"] for hit in await store.search_hybrid("late", filter={"user": "bob"})} == {"bob"}


async def test_a_hybrid_search_checks_its_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    store = InMemoryVectorStore(ScriptedEmbedder())
    assert await store.search_hybrid("anything") == []
    with pytest.raises(InvalidRequest, match="alpha"):
        await store.search_hybrid("x", alpha=1.5)
    with pytest.raises(InvalidRequest, match="k must"):
        await store.search_hybrid("x", k=0)
    monkeypatch.setattr(memory, "LARGE", 0)
    await store.add([Chunk("green tea")])
    assert len(await store.search_hybrid("tea")) == 1


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04 broken"])
async def test_a_file_that_is_no_store_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "store").write_bytes(content)
    with pytest.raises(InvalidRequest, match="no saved vector store"):
        await InMemoryVectorStore.load(tmp_path / "store", ScriptedEmbedder())


@pytest.mark.parametrize(
    "told",
    [
        [],
        {"format": 1},
        {"embedder": "scripted:words", "rows": [["a", "A"]]},
        {"embedder": "scripted:words", "rows": []},
    ],
)
async def test_a_file_whose_parts_do_not_fit_together_is_refused(tmp_path: Path, told: Any) -> None:
    text = np.frombuffer(json.dumps({"format": 1, **told} if told else told).encode(), np.uint8)
    with (tmp_path / "store").open("wb") as file:
        np.savez(file, told=text, vectors=np.zeros((ScriptedEmbedder().dimensions, 1), np.float32))
    with pytest.raises(InvalidRequest, match="no saved vector store"):
        await InMemoryVectorStore.load(tmp_path / "store", ScriptedEmbedder())


async def test_a_large_store_is_searched_in_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []

    def nearest(*args: Any) -> Any:
        threads.append(threading.current_thread().name)
        return find_nearest(*args)

    monkeypatch.setattr(memory, "nearest", nearest)
    store = await InMemoryVectorStore.from_texts(["one", "two", "three"], ScriptedEmbedder())
    await store.search("one")
    monkeypatch.setattr(memory, "LARGE", 3)
    await store.search("one")
    assert threads[0] == threading.main_thread().name != threads[1]


async def test_a_search_under_way_does_not_see_rows_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found is told as it was, although it is replaced, and everything moves, before it is told."""
    monkeypatch.setattr(memory, "LARGE", 0)
    monkeypatch.setattr(memory, "LEAST_DEAD_TO_COMPACT", 1)
    began, goes_on = threading.Event(), threading.Event()

    def nearest(*args: Any) -> Any:
        began.set()
        assert goes_on.wait(10)
        return find_nearest(*args)

    monkeypatch.setattr(memory, "nearest", nearest)
    store = await InMemoryVectorStore.from_texts(["bicycle", "green tea"], ScriptedEmbedder())
    (both,) = [[*store._rows.ids]]
    search = asyncio.create_task(store.search("green tea", k=1))
    await asyncio.to_thread(began.wait, 10)
    await store.delete(both[:1])
    await store.add([Chunk("something else")], ids=both[1:])
    goes_on.set()
    assert [hit.chunk.content for hit in await search] == ["green tea"]


async def test_the_buried_are_dropped_when_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "LEAST_DEAD_TO_COMPACT", 8)
    store = await InMemoryVectorStore.from_texts([f"text {n}" for n in range(4)], ScriptedEmbedder())
    for _ in range(100):
        await store.bump(store._rows.ids[0], {"n": 1})
    assert len(store._rows.ids) < 16
    assert await store.count() == 4
    assert len(await store.search("text", k=10, filter={"n": {"$exists": True}})) >= 1


async def test_the_rows_grow_as_needed() -> None:
    store = InMemoryVectorStore(ScriptedEmbedder())
    for number in range(3):
        await store.add([Chunk(f"text {number} {n}", {"part": number}) for n in range(700)])
        assert len(await store.search("text", k=5000, filter={"part": number})) == 700
    assert await store.count() == 2100


def test_of_few_chosen_and_of_many_the_same_are_nearest() -> None:
    numbers = np.random.default_rng(1)
    vectors = numbers.standard_normal((8, 1000)).astype(np.float32)
    query = numbers.standard_normal(8).astype(np.float32)
    for share in (0.001, 0.01, 0.5, 1.0):
        wanted = numbers.random(1000) < share
        wanted[7] = True
        slots, _ = find_nearest(vectors, wanted, query, 5)
        scores = np.where(wanted, query @ vectors, -np.inf)
        assert slots.tolist() == np.argsort(-scores, kind="stable")[: min(5, wanted.sum())].tolist()


def test_equals_come_by_age() -> None:
    vectors = np.ones((2, 50), np.float32) / np.sqrt(2)
    slots, scores = find_nearest(vectors, np.ones(50, np.bool_), vectors[:, 0], 3)
    assert slots.tolist() == [0, 1, 2]
    assert scores.tolist() == pytest.approx([1, 1, 1])


def test_threads_with_event_loops_of_their_own_may_share_a_store() -> None:
    store = InMemoryVectorStore(ScriptedEmbedder())

    async def work(thread: int) -> None:
        for number in range(100):
            (chunk,) = await store.add([Chunk(f"thread{thread} number{number}", {"thread": thread})])
            await store.bump(chunk, {"count": 1})
            (found,) = await store.search(f"thread{thread} number{number}", k=1, filter={"thread": thread})
            assert found.score > 0.99
            if number % 10 == 0:
                await store.delete([chunk])

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda thread: asyncio.run(work(thread)), range(4)))
    assert asyncio.run(store.count()) == 360
    hits = asyncio.run(store.search("thread1", k=1000, filter={"thread": 1, "count": 1}))
    assert len(hits) == 90
