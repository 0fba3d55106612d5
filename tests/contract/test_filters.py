"""Whatever a filter asks for, the store in memory and the store in PostgreSQL answer alike."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reflexio.agents.vectors.memory import InMemoryVectorStore
from reflexio.agents.vectors.postgres import PostgresVectorStore
from reflexio.agents.vectors.store import Chunk
from reflexio.providers.scripted import ScriptedEmbedder
from tests.builders import name

pytestmark = pytest.mark.xdist_group("postgres")

SCALARS = [None, True, False, 0, 1, -1, 1.5, 10, 9, 2**53 + 1, 1e300, "", "1", "10", "9", "a", "Z", "é", "🫖", "true"]
VALUES = [*SCALARS, [], [1], ["1"], [1, 2], {}, {"a": 1}, {"a": [True]}]
ROWS: list[dict[str, Any]] = [
    {},
    *({"k": value} for value in VALUES),
    *({"j": v, "k": w} for v, w in zip(VALUES, VALUES[3:], strict=False)),
]
KEYS = st.sampled_from(["k", "j", "missing", "a'b"])
ANY = st.sampled_from(VALUES)
ORDERED = st.sampled_from(
    [value for value in SCALARS if isinstance(value, int | float | str) and not isinstance(value, bool)]
)
CONDITIONS = st.one_of(
    st.sampled_from(SCALARS),
    st.lists(ANY, max_size=4),
    st.fixed_dictionaries(
        {}, optional={"$eq": ANY, "$ne": ANY, "$in": st.lists(ANY, max_size=3), "$exists": st.booleans()}
    ),
    st.fixed_dictionaries({}, optional={"$lt": ORDERED, "$gte": ORDERED, "$nin": st.lists(ANY, max_size=3)}),
    st.fixed_dictionaries({"$not": st.fixed_dictionaries({}, optional={"$gt": ORDERED, "$lte": ORDERED, "$eq": ANY})}),
)
FILTERS = st.recursive(
    st.dictionaries(KEYS, CONDITIONS, max_size=2),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"$and": st.lists(inner, max_size=3)}),
        st.fixed_dictionaries({"$or": st.lists(inner, max_size=3)}),
        st.fixed_dictionaries({"$not": inner}),
    ),
    max_leaves=5,
)


@pytest.fixture(scope="module")
def stores(postgres: str) -> Iterator[tuple[InMemoryVectorStore, PostgresVectorStore]]:
    memory = InMemoryVectorStore(ScriptedEmbedder())
    database = PostgresVectorStore(ScriptedEmbedder(), dsn=postgres, table=name("t").replace("-", "_"))
    chunks = [Chunk(str(number), row) for number, row in enumerate(ROWS)]
    asyncio.run(memory.add(chunks))
    asyncio.run(database.add(chunks))
    yield memory, database
    asyncio.run(database.aclose())


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(asked=FILTERS)
def test_both_stores_find_the_same(
    stores: tuple[InMemoryVectorStore, PostgresVectorStore], asked: dict[str, Any]
) -> None:
    found = [asyncio.run(store.search_by_vector([1.0] * 64, k=1000, filter=asked)) for store in stores]
    in_memory, in_database = ({hit.chunk.content for hit in hits} for hits in found)
    assert in_memory == in_database
