import asyncio
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from reflexio.errors import ProviderUnavailable
from reflexio.providers.embedding.cached import CachedEmbedder
from reflexio.providers.scripted import ScriptedEmbedder


class Slow(ScriptedEmbedder):
    """Answers once `go` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = await super().embed(texts)
        await self.go.wait()
        return vectors


async def test_a_repeated_query_is_not_embedded_again() -> None:
    inner = ScriptedEmbedder()
    cached = CachedEmbedder(inner)
    first, second = await cached.embed(["tea"]), await cached.embed(["tea"])
    assert inner.calls == [("tea",)]
    np.testing.assert_array_equal(first, second)


async def test_concurrent_calls_with_one_query_embed_it_once() -> None:
    inner = Slow()
    cached = CachedEmbedder(inner)
    callers = [asyncio.create_task(cached.embed(["tea"])) for _ in range(5)]
    await asyncio.sleep(0)
    inner.go.set()
    await asyncio.gather(*callers)
    assert inner.calls == [("tea",)]


async def test_a_cancelled_caller_does_not_cancel_the_others() -> None:
    inner = Slow()
    cached = CachedEmbedder(inner)
    impatient, patient = (asyncio.create_task(cached.embed(["tea"])) for _ in range(2))
    await asyncio.sleep(0)
    impatient.cancel()
    inner.go.set()
    assert (await patient).shape == (1, 64)
    assert impatient.cancelled()


async def test_while_a_query_is_stuck_other_queries_fail_at_once() -> None:
    inner, now = Slow(), 100.0
    cached = CachedEmbedder(inner, monotonic=lambda: now)
    first = asyncio.create_task(cached.embed(["tea"]))
    await asyncio.sleep(0)
    now += 2
    second = asyncio.create_task(cached.embed(["cup"]))
    await asyncio.sleep(0)
    now += 1.5
    for text in ("tea", "spoon"):
        with pytest.raises(ProviderUnavailable, match="still not embedded"):
            await cached.embed([text])
    assert ("spoon",) not in inner.calls
    inner.go.set()
    await asyncio.gather(first, second)
    now += 60
    assert (await cached.embed(["spoon"])).shape == (1, 64), "queries are sent again once it answers"


async def test_the_least_recently_used_query_is_evicted_first() -> None:
    inner = ScriptedEmbedder()
    cached = CachedEmbedder(inner, size=2)
    for text in ("tea", "cup", "tea", "spoon", "tea", "cup"):
        await cached.embed([text])
    assert inner.calls == [("tea",), ("cup",), ("spoon",), ("cup",)]


async def test_failures_are_not_cached() -> None:
    cached = CachedEmbedder(ScriptedEmbedder(failures=[ProviderUnavailable()]))
    with pytest.raises(ProviderUnavailable):
        await cached.embed(["tea"])
    assert (await cached.embed(["tea"])).shape == (1, 64)


async def test_calls_with_few_texts_fill_the_cache() -> None:
    inner = ScriptedEmbedder()
    cached = CachedEmbedder(inner)
    first = await cached.embed(["tea", "cup", "tea"])
    second = await cached.embed(["spoon", "tea"])
    assert inner.calls == [("tea", "cup"), ("spoon",)]
    assert (first[0] == first[2]).all()
    assert (first[0] == second[1]).all()
    assert (await cached.embed([])).shape == (0, 64)


async def test_imports_do_not_fill_the_cache() -> None:
    inner = ScriptedEmbedder()
    cached = CachedEmbedder(inner, size=1, few=1)
    await cached.embed(["tea"])
    await cached.embed(["cup", "spoon"])
    await cached.embed(["tea"])
    assert inner.calls == [("tea",), ("cup", "spoon")]


async def test_cached_vectors_are_read_only() -> None:
    vectors = await CachedEmbedder(ScriptedEmbedder()).embed(["tea"])
    with pytest.raises(ValueError, match="read-only"):
        vectors[0, 0] = 2


async def test_name_and_dimensions_are_those_of_the_embedder_inside() -> None:
    cached = CachedEmbedder(ScriptedEmbedder(name="scripted:short", dimensions=8))
    assert (cached.name, cached.dimensions) == ("scripted:short", 8)


async def test_large_calls_are_kept_apart_from_queries() -> None:
    inner = ScriptedEmbedder()
    cached = CachedEmbedder(inner, size=2, size_of_imports=3, few=2)
    await cached.embed(["query"])
    await cached.embed([f"row {number}" for number in range(9)])
    await cached.embed(["query"])
    await cached.embed(["row 6", "row 7", "row 8"])
    assert len(inner.calls) == 2, "the query and the last rows are known"
    await cached.embed(["row 5"])
    assert inner.calls[-1] == ("row 5",), "earlier rows are not"


async def test_nothing_is_known_after_it_was_told_to_forget() -> None:
    inner = Slow()
    cached = CachedEmbedder(inner)
    inner.go.set()
    await cached.embed(["tea"])
    await cached.embed(["tea", "cup"])
    inner.go.clear()
    under_way = [asyncio.create_task(cached.embed(texts)) for texts in (["one"], ["two", "three"])]
    await asyncio.sleep(0)
    cached.forget()
    inner.go.set()
    await asyncio.gather(*under_way)
    before = len(inner.calls)
    for text in ("tea", "cup", "one", "two", "three"):
        await cached.embed([text])
    assert len(inner.calls) == before + 5
