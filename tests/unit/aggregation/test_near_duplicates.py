"""Near duplicates of an agent playbook, by the vectors that are stored."""

import math
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reflexio.aggregation.near_duplicates import SHOWN, near_duplicates, near_pairs
from reflexio.aggregation.review_queue import review_queue
from reflexio.models.learning import Kind, Learning, PlaybookStatus, Status
from reflexio.models.review import GetReviewQueueRequest
from reflexio.ports.storage import Store
from reflexio.ports.storage.index import TextVectors
from reflexio.storage.sqlite import open_sqlite

MODEL = "m"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    database = open_sqlite(tmp_path / "reflexio.db")
    yield database.of("org")
    await database.close()


async def add(store: Store, content: str, cosine: float | None, **more: Any) -> Learning:
    """A playbook whose vector has this cosine to that of the first one; None is a playbook without a vector."""
    row = replace(Learning(Kind.AGENT_PLAYBOOK, content, agent_version="v1", name="playbook"), **more)
    vectors = TextVectors()
    if cosine is not None:
        numbers = np.zeros(8, np.float16)
        numbers[0], numbers[1] = cosine, math.sqrt(1 - cosine**2)
        vectors = TextVectors(MODEL, {row.text: numbers.tobytes()})
    (number,) = await store.write(lambda tx: tx.learnings.add([row], vectors))
    return replace(row, id=number)


async def near(store: Store, playbook: Learning) -> list[tuple[str, float, bool]]:
    found = await store.read(lambda tx: near_duplicates(tx, MODEL, playbook))
    return [(other.playbook.content, round(other.similarity, 2), other.contradicts) for other in found]


async def test_the_most_similar_comes_first_whatever_was_decided_about_it(store: Store) -> None:
    playbook = await add(store, "Ask for the order number.", 1.0)
    await add(store, "Ask for a number.", 0.7, review=PlaybookStatus.REJECTED)
    await add(store, "Ask for the number of the order.", 0.9, review=PlaybookStatus.APPROVED)
    await add(store, "Offer tea.", 0.3)
    assert [content for content, _, _ in await near(store, playbook)] == [
        "Ask for the number of the order.",
        "Ask for a number.",
    ]


async def test_the_opposite_advice_is_marked(store: Store) -> None:
    playbook = await add(store, "Ask for the order number.", 1.0)
    await add(store, "Do not ask for the order number.", 0.9)
    assert [opposite for _, _, opposite in await near(store, playbook)] == [True]


async def test_other_versions_what_it_replaces_and_what_is_retired_are_left_out(store: Store) -> None:
    old = await add(store, "Ask.", 0.9)
    await add(store, "Ask them.", 0.9, agent_version="v2")
    await add(store, "Ask her.", 0.9, status=Status.SUPERSEDED)
    playbook = await add(store, "Ask for the order number.", 1.0, details={"replaces": [old.id]})
    assert await near(store, playbook) == []


async def test_the_similarity_of_the_clusters_decides(store: Store) -> None:
    playbook = await add(store, "Ask for the order number.", 1.0)
    await add(store, "Ask for a number.", 0.5)
    assert await near(store, playbook) == []
    await store.write(lambda tx: tx.pools.put(replace(tx.pools.get("v1", "playbook"), similarity=0.45)))
    assert await near(store, playbook) == [("Ask for a number.", 0.5, False)]


async def test_without_a_vector_there_are_none(store: Store) -> None:
    playbook = await add(store, "Ask for the order number.", None)
    await add(store, "Ask for a number.", 0.99)
    assert await near(store, playbook) == []


async def test_many_are_cut_to_the_nearest(store: Store) -> None:
    playbook = await add(store, "Ask for the order number.", 1.0)
    for place in range(20):
        await add(store, f"Ask for number {place}.", 0.7 + place / 100)
    found = await near(store, playbook)
    assert [content for content, _, _ in found] == [f"Ask for number {place}." for place in range(19, 19 - SHOWN, -1)]


async def test_a_review_item_has_them(store: Store) -> None:
    playbook = await add(store, "Ask for the order number.", 1.0)
    other = await add(store, "Ask for the number of the order.", 0.9, review=PlaybookStatus.APPROVED)
    (item,) = (await review_queue(store, MODEL, GetReviewQueueRequest(agent_playbook_id=playbook.id))).items
    (similar,) = item.near_duplicates
    assert (similar.agent_playbook.agent_playbook_id, similar.similarity) == (other.id, 0.9)


async def test_pairs_among_playbooks_are_those_that_each_of_them_would_find(store: Store) -> None:
    first = await add(store, "Ask for the order number.", 1.0)
    second = await add(store, "Do not ask for the order number.", 0.95)
    successor = await add(store, "Ask for the number.", 0.9, details={"replaces": [first.id]})
    others = [
        await add(store, "Ask for a number.", 0.93, agent_version="v2"),
        await add(store, "Offer tea.", -0.4),
        await add(store, "No vector yet.", None),
    ]
    playbooks = [first, second, successor, *others]
    pairs = await store.read(lambda tx: near_pairs(tx, MODEL, playbooks))
    found = [(pair.first.id, pair.second.id, round(pair.similarity, 2), pair.contradicts) for pair in pairs]
    assert found == [(second.id, successor.id, 0.99, True), (first.id, second.id, 0.95, True)]
    assert {content for content, _, _ in await near(store, first)} >= {second.content}
    assert {content for content, _, _ in await near(store, second)} >= {first.content, successor.content}
    assert await store.read(lambda tx: near_pairs(tx, MODEL, [])) == []
