import asyncio

import pytest

from reflexio.agents.vectors import postgres as module
from reflexio.agents.vectors.postgres import PostgresVectorStore
from reflexio.agents.vectors.store import Chunk
from reflexio.errors import InvalidRequest, StorageUnavailable
from reflexio.providers.scripted import ScriptedEmbedder
from tests.builders import name

pytestmark = pytest.mark.xdist_group("postgres")


def table() -> str:
    return name("t").replace("-", "_")


def store(dsn: str, table_: str, dimensions: int = 64) -> PostgresVectorStore:
    return PostgresVectorStore(ScriptedEmbedder(dimensions=dimensions), dsn=dsn, table=table_)


async def test_stores_that_make_the_table_at_once_all_succeed(postgres: str) -> None:
    made = table()
    stores = [store(postgres, made) for _ in range(4)]
    await asyncio.gather(*(each.add([Chunk("tea")]) for each in stores))
    assert await stores[0].count() == 4
    for each in stores:
        await each.aclose()


def test_one_store_serves_one_event_loop_after_the_other(postgres: str) -> None:
    shared = store(postgres, table())
    asyncio.run(shared.add([Chunk("tea")]))
    assert asyncio.run(shared.count()) == 1
    asyncio.run(shared.aclose())
    assert asyncio.run(shared.count()) == 1
    asyncio.run(shared.aclose())


async def test_a_filter_that_nearly_everything_answers_goes_through_the_index_and_fills_every_place(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_EXACT_ROWS", 10)
    async with store(postgres, table()) as kept:
        await kept.add([Chunk(f"tea {n}", {"user_id": "ada", "n": n}) for n in range(200)])
        assert len(await kept.search("tea", k=150, filter={"user_id": "ada"})) == 150
        assert len(await kept.search("tea", k=15, filter={"n": {"$gte": 180}})) == 15
        assert len(await kept.search("tea", k=150, filter={"n": {"$lt": 11}})) == 11


async def test_a_table_of_another_size_is_refused(postgres: str) -> None:
    made = table()
    async with store(postgres, made) as kept:
        await kept.count()
    async with store(postgres, made, dimensions=32) as other:
        with pytest.raises(InvalidRequest, match="of 64 numbers, not those of 'scripted:words' with 32"):
            await other.count()


async def test_a_table_that_another_embedder_filled_is_refused(postgres: str) -> None:
    made = table()
    async with PostgresVectorStore(ScriptedEmbedder(name="ada's"), dsn=postgres, table=made) as kept:
        await kept.count()
    async with store(postgres, made) as other:
        with pytest.raises(InvalidRequest, match="Vectors by ada's"):
            await other.count()


async def test_vectors_too_long_for_an_index_are_scanned(postgres: str) -> None:
    async with store(postgres, table(), dimensions=2_500) as kept:
        await kept.add([Chunk("tea"), Chunk("bicycle")])
        assert [hit.chunk.content for hit in await kept.search("tea", k=1)] == ["tea"]


async def test_a_table_may_stand_in_a_schema(postgres: str) -> None:
    async with store(postgres, f"public.{table()}") as kept:
        await kept.add([Chunk("tea")])
        assert await kept.count() == 1


@pytest.mark.parametrize("bad", ["", "a b", 'a"b', "a;drop table x", "a.b.c", "x" * 42, "1a"])
def test_a_name_that_is_none_for_a_table_is_refused(bad: str) -> None:
    with pytest.raises(InvalidRequest, match="no name for a table"):
        store("", bad)


def test_the_stated_dimension_must_be_the_embedders() -> None:
    with pytest.raises(InvalidRequest, match="gives 64 numbers, not 3"):
        PostgresVectorStore(ScriptedEmbedder(), dsn="", dimension=3)


@pytest.mark.parametrize("text", ["nul \x00", "lone \ud800"])
async def test_text_that_postgres_cannot_hold_is_refused_and_nothing_is_stored(postgres: str, text: str) -> None:
    async with store(postgres, table()) as kept:
        with pytest.raises(InvalidRequest, match="cannot store"):
            await kept.add([Chunk("tea"), Chunk(text)])
        with pytest.raises(InvalidRequest, match="cannot store"):
            await kept.add([Chunk("tea", {"note": text})])
        assert await kept.count() == 0


async def test_a_server_that_is_not_there_is_told_at_once() -> None:
    with pytest.raises(StorageUnavailable, match="/nowhere"):
        await store("host=/nowhere user=x dbname=x", table()).count()
