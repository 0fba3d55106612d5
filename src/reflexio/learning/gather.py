"""A pool is laid out: its members are clustered and placed, and the clusters that changed are named.

Anew, all members are read. In between only the new ones are, with the middles of the clusters and the members of
those that they join, so that it costs what is new.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reflexio.learning.aggregate import (
    Centres,
    Layout,
    against,
    changed,
    grouped,
    heirs,
    inside,
    is_outgrown,
    left_over,
    middles,
    unit,
)
from reflexio.learning.cluster import Vectors
from reflexio.models.config import PlaybookAggregatorConfig
from reflexio.models.learning import Kind, Learning
from reflexio.ports.embedding import Embedder
from reflexio.ports.storage import Cluster, LearningFilter, Member, Pool, Store, Tx
from reflexio.ports.work import Json
from reflexio.retrieval.exam import examine
from reflexio.retrieval.walk import every

BATCH = 64
NEW = (0,)
MOST_TRIES = 3
"""Clusters that one new playbook is held against, when it contradicts the nearest."""
MOST_ALIKE = 0.95
"""An embedder that holds all texts as alike as that tells nothing apart."""
Alive = Callable[[], Awaitable[object]]


async def vectors_of(members: Sequence[Member], embedder: Embedder, alive: Alive | None = None) -> Vectors:
    """The vectors of all, in their order; those that are not stored yet are made. `alive` is called now and then."""
    rows = np.zeros((len(members), embedder.dimensions), np.float32)
    stored = [place for place, each in enumerate(members) if each.vector is not None]
    if stored:
        kept = b"".join(members[place].vector or b"" for place in stored)
        rows[stored] = np.frombuffer(kept, np.float16).reshape(len(stored), -1)
    missing = [place for place, each in enumerate(members) if each.vector is None]
    for start in range(0, len(missing), BATCH):
        some = missing[start : start + BATCH]
        rows[some] = await embedder.embed([_text(members[place]) for place in some])
        if alive is not None:
            await alive()
    return unit(rows)


def _text(member: Member) -> str:
    return Learning(Kind.USER_PLAYBOOK, member.content, trigger=member.trigger).text


@dataclass(frozen=True)
class Gathering:
    """The current user playbooks of one agent version and type."""

    agent_version: str
    name: str
    settings: PlaybookAggregatorConfig
    store: Store
    embedder: Embedder

    async def lay_out(self, alive: Alive, *, anew: bool) -> Json:
        """Places every member. Tells how many there are, how many clusters are large enough, and which have changed.

        With `anew` all are grouped again, and clusters are tried again that failed often.
        """
        pool, clusters, new = await self.store.read(self._look)
        count = len(new) + sum(each.size for each in clusters.values())
        if anew or is_outgrown(pool, count, self.embedder.name, self.settings.clustering_similarity):
            return await self._regroup(pool, alive, patient=not anew)
        return await self._extend(pool, clusters, new, alive)

    def _look(self, tx: Tx) -> tuple[Pool, dict[int, Cluster], list[Member]]:
        pool = tx.pools.get(self.agent_version, self.name)
        return pool, tx.pools.clusters(self.agent_version, self.name), self._members(tx, NEW)

    def _members(self, tx: Tx, clusters: Collection[int] | None = None) -> list[Member]:
        found = tx.pools.members(self.agent_version, self.name, self.embedder.name, clusters)
        return [each for each in found if each.content.strip()]

    async def _regroup(self, pool: Pool, alive: Alive, *, patient: bool) -> Json:
        members = await self.store.read(self._members)
        vectors = await vectors_of(members, self.embedder, alive)
        wanted = self.settings.clustering_similarity
        strangers = 0.0 if wanted else min(MOST_ALIKE, max(0.0, (await examine(self.embedder)).mean))

        def compute() -> tuple[Layout, dict[int, list[Member]], dict[int, bytes]]:
            layout = grouped(members, vectors, pool.clusters, wanted, strangers)
            return layout, inside(members, layout.numbers), middles(members, vectors, layout.numbers)

        layout, clusters, centres = await asyncio.to_thread(compute)

        def put(tx: Tx) -> list[int]:
            moved = {each.id: layout.numbers[each.id] for each in members}
            tx.pools.place({each.id: moved[each.id] for each in members if moved[each.id] != each.cluster})
            states = self._states(tx, patient=patient)
            tx.pools.lay(self.agent_version, self.name, _clusters(clusters, centres, states))
            self._settle(tx, pool, clusters=layout.last, similarity=layout.similarity, grouped=len(members))
            self._inherit(tx, clusters)
            return changed(clusters, states, self.settings.min_cluster_size, patient=patient)

        found = await self.store.write(put)
        return self._told(len(members), [len(each) for each in clusters.values()], found)

    async def _extend(self, pool: Pool, known: dict[int, Cluster], new: Sequence[Member], alive: Alive) -> Json:
        vectors = await vectors_of(new, self.embedder, alive)
        numbers, held = await self._joined(pool, known, new, vectors)
        left = [at for at, each in enumerate(new) if each.id not in numbers]
        layout = await asyncio.to_thread(
            grouped, [new[at] for at in left], vectors[left], pool.clusters, pool.similarity
        )
        numbers |= layout.numbers
        joined = inside(new, numbers)
        touched = {number: [*held.get(number, []), *members] for number, members in joined.items()}
        everyone = [each for members in touched.values() for each in members]
        rows = await vectors_of(everyone, self.embedder, alive)
        centres = middles(everyone, rows, {**{each.id: each.cluster for each in everyone}, **numbers})
        now = {each.number: each for each in _clusters(touched, centres, known)}
        least = self.settings.min_cluster_size

        def put(tx: Tx) -> list[int]:
            tx.pools.place(numbers)
            tx.pools.note(self.agent_version, self.name, *now.values())
            self._settle(tx, pool, clusters=layout.last)
            return changed(touched, known, least, patient=True)

        found = await self.store.write(put)
        whole = {**known, **now}
        rest = left_over((each for number, each in whole.items() if number not in touched), least)
        sizes = [each.size for each in whole.values()]
        return self._told(sum(sizes), sizes, [*found, *rest])

    async def _joined(
        self, pool: Pool, known: dict[int, Cluster], new: Sequence[Member], vectors: Vectors
    ) -> tuple[dict[int, int], dict[int, list[Member]]]:
        """Which cluster each new one joins, if any, and the members that those had."""
        centres = Centres.of(known.values(), self.embedder.dimensions)
        nearest = await asyncio.to_thread(centres.nearest, vectors, pool.similarity)
        held = await self._held({number for number in nearest if number})
        numbers: dict[int, int] = {}
        company: dict[int, list[Member]] = {number: list(members) for number, members in held.items()}
        for each, vector, number in zip(new, vectors, nearest, strict=True):
            place, tried = number, set[int]()
            while place is not None and any(against(each, other) for other in company[place]):
                tried.add(place)
                place = centres.next_best(vector, pool.similarity, tried) if len(tried) < MOST_TRIES else None
                if place is not None and place not in company:
                    held |= await self._held({place})
                    company[place] = list(held[place])
            if place is not None:
                numbers[each.id] = place
                company[place].append(each)
        return numbers, held

    async def _held(self, numbers: set[int]) -> dict[int, list[Member]]:
        if not numbers:
            return {}
        members = await self.store.read(lambda tx: self._members(tx, numbers))
        found = inside(members, {each.id: each.cluster for each in members})
        return {number: found.get(number, []) for number in numbers}

    def _told(self, members: int, sizes: Sequence[int], found: Sequence[int]) -> Json:
        large = sum(size >= self.settings.min_cluster_size for size in sizes)
        return {"members": members, "clusters": large, "changed": list(found)}

    def _states(self, tx: Tx, *, patient: bool) -> dict[int, Cluster]:
        """Whoever is not patient gets also those anew that somebody deleted."""
        states = tx.pools.clusters(self.agent_version, self.name)
        if patient:
            return states
        there = tx.learnings.many([each.playbook_id for each in states.values() if each.playbook_id])
        return {number: each for number, each in states.items() if not each.playbook_id or each.playbook_id in there}

    def _settle(self, tx: Tx, seen: Pool, **values: float) -> None:
        """What was learned while all this was computed still counts as new."""
        now = tx.pools.get(self.agent_version, self.name)
        fresh = max(0, now.fresh - seen.fresh)
        tx.pools.put(replace(now, fresh=fresh, model=self.embedder.name, **values))  # type: ignore[arg-type]

    def _inherit(self, tx: Tx, clusters: Mapping[int, Sequence[Member]]) -> None:
        """Playbooks whose cluster is gone follow what they were made of: whatever is made there replaces them."""
        where = LearningFilter(Kind.AGENT_PLAYBOOK, agent_version=self.agent_version, name=self.name)
        lost = {row.id: row for row in every(tx, where) if row.cluster and row.cluster not in clusters}
        made_of = {
            number: [each["user_playbook_id"] for each in row.details.get("source_windows", [])]
            for number, row in lost.items()
        }
        tx.pools.place(heirs(clusters, made_of))


def _clusters(
    clusters: Mapping[int, Sequence[Member]], centres: Mapping[int, bytes], states: Mapping[int, Cluster]
) -> list[Cluster]:
    return [
        replace(states.get(number, Cluster(number)), size=len(members), centre=centres[number])
        for number, members in clusters.items()
    ]
