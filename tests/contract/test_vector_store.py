"""What every store of vectors does, wherever it keeps them."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest

from reflexio.agents.vectors.memory import InMemoryVectorStore
from reflexio.agents.vectors.postgres import PostgresVectorStore
from reflexio.agents.vectors.store import Chunk, VectorStore
from reflexio.errors import InvalidRequest, ProviderError
from reflexio.providers.scripted import ScriptedEmbedder
from tests.builders import name

pytestmark = pytest.mark.xdist_group("postgres")

AnyStore = InMemoryVectorStore | PostgresVectorStore


@pytest.fixture(params=["memory", "postgres"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[AnyStore]:
    embedder = ScriptedEmbedder()
    if request.param == "memory":
        yield InMemoryVectorStore(embedder)
    else:
        dsn = request.getfixturevalue("postgres")
        async with PostgresVectorStore(embedder, dsn=dsn, table=name("t").replace("-", "_")) as made:
            yield made


def test_the_embedder_is_given_by_name_or_by_place() -> None:
    own = ScriptedEmbedder(name="own")
    given = (
        InMemoryVectorStore(own),
        InMemoryVectorStore(embedder=own),
        PostgresVectorStore(own, dsn="x"),
        PostgresVectorStore(embedder=own, dsn="x"),
    )
    assert [store.embedder.name for store in given] == ["own"] * 4


def chunks(*metadata: dict[str, Any]) -> list[Chunk]:
    return [Chunk(f"text {number}", each) for number, each in enumerate(metadata)]


async def matching(store: AnyStore, asked: dict[str, Any]) -> set[str]:
    return {hit.chunk.content for hit in await store.search("text", k=100, filter=asked)}


async def test_a_store_that_was_never_used_is_empty(store: AnyStore) -> None:
    assert isinstance(store, VectorStore)
    assert await store.search("anything") == []
    assert await store.count() == 0
    assert await store.get_by_ids(["vec_1"]) == []
    await store.delete(["vec_1"])


async def test_the_nearest_come_first_with_their_cosine(store: AnyStore) -> None:
    await store.add([Chunk("tea in the morning"), Chunk("tea in the evening"), Chunk("a bicycle")])
    hits = await store.search("tea in the evening", k=2)
    assert [hit.chunk.content for hit in hits] == ["tea in the evening", "tea in the morning"]
    assert hits[0].score == pytest.approx(1, abs=1e-5)
    assert hits[1].score == pytest.approx(0.75, abs=1e-5)


async def test_what_is_stored_is_found_by_its_id_and_can_be_replaced_and_deleted(store: AnyStore) -> None:
    first, second = await store.add([Chunk("one", {"n": 1}), Chunk("two")])
    assert await store.get_by_ids([second, "unknown", first]) == [Chunk("two"), Chunk("one", {"n": 1})]
    assert await store.add([Chunk("three", {"n": 3})], ids=[first]) == [first]
    assert await store.get_by_ids([first]) == [Chunk("three", {"n": 3})]
    assert await store.count() == 2
    await store.delete([first, "unknown"])
    assert [hit.id for hit in await store.search("three", k=5)] == [second]


async def test_of_chunks_with_one_id_the_last_is_kept(store: AnyStore) -> None:
    assert await store.add([Chunk("one"), Chunk("two")], ids=["x", "x"]) == ["x", "x"]
    assert await store.get_by_ids(["x"]) == [Chunk("two")]


async def test_a_filter_leaves_no_place_unfilled(store: AnyStore) -> None:
    """A user with few chunks among many of others, all of which are nearer."""
    await store.add([Chunk("tea", {"user_id": "bob"}) for _ in range(300)])
    await store.add([Chunk(f"coffee {number}", {"user_id": "ada"}) for number in range(5)])
    hits = await store.search("tea", k=5, filter={"user_id": "ada"})
    assert sorted(hit.chunk.content for hit in hits) == [f"coffee {number}" for number in range(5)]


async def test_values_are_compared_by_type(store: AnyStore) -> None:
    await store.add(chunks({"n": 9}, {"n": 10}, {"n": 10.5}, {"n": "10"}, {"n": True}, {"n": None}, {}, {"n": [10]}))
    assert await matching(store, {"n": {"$gte": 10}}) == {"text 1", "text 2"}
    assert await matching(store, {"n": {"$lt": "2"}}) == {"text 3"}
    assert await matching(store, {"n": 10.0}) == {"text 1"}
    assert await matching(store, {"n": True}) == {"text 4"}
    assert await matching(store, {"n": 1}) == set()
    assert await matching(store, {"n": {"$eq": [10]}}) == {"text 7"}
    assert await matching(store, {"n": ["10", 9]}) == {"text 0", "text 3"}


async def test_a_missing_key_is_null_and_is_unequal_to_everything_else(store: AnyStore) -> None:
    await store.add(chunks({"n": 9}, {"n": None}, {}))
    assert await matching(store, {"n": None}) == {"text 1", "text 2"}
    assert await matching(store, {"n": {"$ne": 9}}) == {"text 1", "text 2"}
    assert await matching(store, {"n": {"$nin": [9, None]}}) == set()
    assert await matching(store, {"n": {"$exists": True}}) == {"text 0", "text 1"}
    assert await matching(store, {"n": {"$exists": False}}) == {"text 2"}
    assert await matching(store, {"n": {"$not": {"$gt": 5}}}) == {"text 1", "text 2"}


async def test_conditions_are_joined_and_turned_around(store: AnyStore) -> None:
    await store.add(chunks({"a": 1, "b": "x"}, {"a": 2, "b": "y"}, {"a": 3, "b": "x"}))
    assert await matching(store, {"a": {"$gt": 1, "$lt": 3}}) == {"text 1"}
    assert await matching(store, {"a": 3, "b": "x"}) == {"text 2"}
    assert await matching(store, {"$or": [{"a": 1}, {"b": "y"}]}) == {"text 0", "text 1"}
    assert await matching(store, {"$not": {"$and": [{"a": 1}, {"b": "x"}]}}) == {"text 1", "text 2"}
    assert await matching(store, {}) == {"text 0", "text 1", "text 2"}
    assert await matching(store, {"$or": []}) == await matching(store, {"a": []}) == set()


async def test_a_key_may_be_anything(store: AnyStore) -> None:
    keys = ["it's", 'a"b', "x' OR TRUE --", "%s", "{}", "ключ", "a.b", ""]
    await store.add(chunks(*({key: key} for key in keys)))
    for number, key in enumerate(keys):
        assert await matching(store, {key: key}) == {f"text {number}"}
        assert await matching(store, {key: {"$gte": key, "$exists": True}}) == {f"text {number}"}


async def test_strings_are_ordered_by_code_point(store: AnyStore) -> None:
    await store.add(chunks({"s": "Zoe"}, {"s": "adam"}, {"s": "émile"}, {"s": "🫖"}, {"s": "�"}))
    assert await matching(store, {"s": {"$lt": "a"}}) == {"text 0"}
    assert await matching(store, {"s": {"$gt": "z"}}) == {"text 2", "text 3", "text 4"}
    assert await matching(store, {"s": {"$gt": "�"}}) == {"text 3"}


@pytest.mark.parametrize(
    "asked", [{"$near": 1}, {"a": {"$like": "x"}}, {"a": {"$in": 3}}, {"a": {"$gt": None}}, {"a": {1, None, object()}}]
)
async def test_a_filter_that_cannot_be_read_is_refused(store: AnyStore, asked: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        await store.search("x", filter=asked)


async def test_metadata_must_be_json(store: AnyStore) -> None:
    with pytest.raises(InvalidRequest, match="JSON"):
        await store.add([Chunk("x", {"at": object()})])
    with pytest.raises(InvalidRequest, match="JSON"):
        await store.add([Chunk("x", {"score": float("nan")})])
    assert await store.count() == 0


async def test_a_query_of_another_size_or_without_numbers_is_refused(store: AnyStore) -> None:
    await store.add([Chunk("x")])
    with pytest.raises(InvalidRequest, match="3 numbers where 64 are stored"):
        await store.search_by_vector([1.0, 0.0, 0.0])
    with pytest.raises(InvalidRequest, match="not finite"):
        await store.search_by_vector([float("nan")] * 64)
    with pytest.raises(InvalidRequest, match="vectors of 64 numbers"):
        await store.search_by_vector(["x"] * 64)  # type: ignore[list-item]


async def test_an_embedder_that_answers_wrongly_is_named(store: AnyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    async def embed_batch(texts: list[str]) -> Any:
        return np.full((len(texts), 64), np.inf) if texts == ["infinite"] else [[1.0, 2.0]] * len(texts)

    monkeypatch.setattr(store.embedder, "embed_batch", embed_batch)
    with pytest.raises(ProviderError, match="'scripted:words' gave a vector of 2 numbers where 64"):
        await store.add([Chunk("short")])
    with pytest.raises(ProviderError, match="not finite"):
        await store.add([Chunk("infinite")])
    assert await store.count() == 0


async def test_a_vector_of_zeros_is_like_nothing(store: AnyStore) -> None:
    await store.add([Chunk("tea")])
    assert [hit.score for hit in await store.search_by_vector([0.0] * 64)] == [0.0]


async def test_hits_can_be_made_to_differ(store: AnyStore) -> None:
    texts = ("green tea here", "green tea there", "black coffee in a very large cup", "bicycle")
    await store.add([Chunk(text) for text in texts])
    plain = [hit.chunk.content for hit in await store.search("green tea or black coffee", k=2)]
    varied = [hit.chunk.content for hit in await store.search("green tea or black coffee", k=2, diversity=0.5)]
    assert set(plain) == {"green tea here", "green tea there"}
    assert varied[1] == "black coffee in a very large cup"
    with pytest.raises(InvalidRequest):
        await store.search("x", diversity=1.5)
    with pytest.raises(InvalidRequest):
        await store.search("x", k=0)


async def test_counts_that_are_raised_at_once_all_count(store: AnyStore) -> None:
    (chunk,) = await store.add([Chunk("tea", {"user_id": "ada", "helped": 1})])
    await asyncio.gather(*(store.bump(chunk, {"helped": 1, "hurt": 2}) for _ in range(20)))
    await store.bump("unknown", {"helped": 1})
    assert await store.get_by_ids([chunk]) == [Chunk("tea", {"user_id": "ada", "helped": 21, "hurt": 40})]
    (hit,) = await store.search("tea", filter={"helped": 21})
    assert hit.score == pytest.approx(1, abs=1e-5)


async def test_what_a_hit_holds_is_the_callers_own(store: AnyStore) -> None:
    await store.add([Chunk("tea", {"user_id": "ada"})])
    (hit,) = await store.search("tea")
    hit.chunk.metadata["user_id"] = "bob"
    assert await matching(store, {"user_id": "ada"}) == {"tea"}
