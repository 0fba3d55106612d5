"""Pools and clusters: every storage counts what is new, finds the members and keeps what was dealt with."""

from dataclasses import replace

import numpy as np

from reflexio.models.learning import Kind, Learning, Status
from reflexio.ports.storage import Cluster, Database, LearningFilter, Pool, Store, Tx

MODEL = "m"


def playbook(content: str, **changes: object) -> Learning:
    made = Learning(Kind.USER_PLAYBOOK, content, user_id="ann", agent_version="v1", name="x", modified_at=5)
    return replace(made, **changes)  # type: ignore[arg-type]


async def test_news_are_counted_from_the_first_to_the_last(store: Store) -> None:
    for at in (100, 110):
        await store.write(lambda tx, at=at: tx.pools.mark("v1", "x", 2, at))  # type: ignore[misc]
    found = await store.read(lambda tx: tx.pools.get("v1", "x"))
    assert (found.fresh, found.fresh_since, found.signalled_at) == (4, 100, 110)
    assert await store.read(lambda tx: tx.pools.get("v1", "y")) == Pool(store.org_id, "v1", "y")


async def test_pools_with_news_come_page_by_page(database: Database) -> None:
    org = database.of("org")

    def put(tx: Tx) -> None:
        for name in ("a", "b", "c"):
            tx.pools.mark("v1", name, 1, 100)
        tx.pools.put(replace(tx.pools.get("v1", "b"), fresh=0))
        tx.pools.put(replace(tx.pools.get("v1", "d"), retry_at=7))

    await org.write(put)
    first = await database.pools(2)
    rest = await database.pools(2, after=first[-1])
    assert [each.name for each in (*first, *rest)] == ["a", "c", "d"]
    assert {each.org_id for each in first} == {"org"}


async def test_members_are_current_ones_with_their_vectors(database: Database) -> None:
    store = database.of("org")
    rows = [
        playbook("one"),
        playbook("two", cluster=3),
        playbook("old", status=Status.ARCHIVED),
        playbook("elsewhere", agent_version="v2"),
        playbook("other", name="y"),
    ]
    ids = await store.write(lambda tx: tx.learnings.add(rows))
    waiting = await database.read_vectors(lambda vectors: vectors.waiting(1))
    vector = np.ones(4, np.float16).tobytes()
    await database.write_vectors(lambda vectors: vectors.put(waiting, MODEL, [vector]))
    one, two = await store.read(lambda tx: tx.pools.members("v1", "x", MODEL))
    assert (one.id, one.content, one.cluster, one.modified_at, one.vector) == (ids[0], "one", 0, 5, vector)
    assert (two.id, two.cluster, two.vector) == (ids[1], 3, None)
    assert await store.read(lambda tx: tx.pools.members("v1", "x", MODEL, (3,))) == [two]
    assert await store.read(lambda tx: tx.pools.names("v1")) == ["x", "y"]
    assert await database.of("other").read(lambda tx: tx.pools.members("v1", "x", MODEL)) == []


async def test_a_place_in_a_cluster_is_found_by_filter_and_changes_nothing_else(store: Store) -> None:
    one, two = await store.write(lambda tx: tx.learnings.add([playbook("one"), playbook("two")]))
    await store.write(lambda tx: tx.pools.assign({one: 7}))
    where = LearningFilter(Kind.USER_PLAYBOOK, clusters=(7,))
    found = await store.read(lambda tx: tx.learnings.get(where))
    assert found == replace(playbook("one"), id=one, cluster=7)
    assert await store.read(lambda tx: tx.learnings.count(LearningFilter(Kind.USER_PLAYBOOK, clusters=(0,)))) == 1
    assert two


async def test_what_became_of_a_cluster_is_kept_for_its_pool_alone(store: Store) -> None:
    state = Cluster(3, 9, "written", "failed", 2, "no", 5, b"centre")
    await store.write(lambda tx: tx.pools.put_clusters("v1", "x", state))
    await store.write(lambda tx: tx.pools.put_clusters("v1", "x", replace(state, attempts=3)))
    assert await store.read(lambda tx: tx.pools.clusters("v1", "x")) == {3: replace(state, attempts=3)}
    assert await store.read(lambda tx: tx.pools.cluster("v1", "x", 3)) == replace(state, attempts=3)
    assert await store.read(lambda tx: tx.pools.cluster("v1", "y", 3)) == Cluster(3)
    assert await store.read(lambda tx: tx.pools.clusters("v1", "y")) == {}
    await store.write(lambda tx: tx.pools.replace_clusters("v1", "x", [Cluster(4, size=1, centre=b"12")]))
    assert await store.read(lambda tx: tx.pools.clusters("v1", "x")) == {4: Cluster(4, size=1, centre=b"12")}
