"""Clusters the user playbooks of one pool, and finds the clusters that changed.

From scratch, all members are read. In between only new members are read, with the centroids of the clusters and the
members of those that they join, so that the cost is that of what is new.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reflexio.aggregation.cluster_identity import (
    Assignment,
    Centroids,
    assign,
    by_cluster,
    centroid_bytes,
    changed_clusters,
    members_contradict,
    must_recluster,
    successors,
    unanswered_clusters,
    unit_length,
)
from reflexio.aggregation.clustering import Vectors
from reflexio.aggregation.support import Support, with_support
from reflexio.models.config import PlaybookAggregatorConfig
from reflexio.models.learning import Kind, Learning
from reflexio.ports.embedding import Embedder
from reflexio.ports.storage import Cluster, LearningFilter, Member, Pool, Store, Tx
from reflexio.ports.work import Json
from reflexio.retrieval.calibration import calibrate
from reflexio.retrieval.filters import all_pages

BATCH = 64
UNASSIGNED = (0,)
MOST_TRIES = 3
"""Clusters that are tried for a new playbook when it members_contradict the nearest one."""
MOST_UNRELATED = 0.95
"""The highest mean cosine of unrelated texts that is believed of an embedder."""
Heartbeat = Callable[[], Awaitable[object]]


async def vectors_of(members: Sequence[Member], embedder: Embedder, heartbeat: Heartbeat | None = None) -> Vectors:
    """The vectors of all members, in order; missing ones are embedded. `heartbeat` is called after each batch."""
    rows = np.zeros((len(members), embedder.dimensions), np.float32)
    with_vector = [place for place, member in enumerate(members) if member.vector is not None]
    if with_vector:
        blob = b"".join(members[place].vector or b"" for place in with_vector)
        rows[with_vector] = np.frombuffer(blob, np.float16).reshape(len(with_vector), -1)
    missing = [place for place, member in enumerate(members) if member.vector is None]
    for start in range(0, len(missing), BATCH):
        batch = missing[start : start + BATCH]
        rows[batch] = await embedder.embed([_text(members[place]) for place in batch])
        if heartbeat is not None:
            await heartbeat()
    return unit_length(rows)


def _text(member: Member) -> str:
    return Learning(Kind.USER_PLAYBOOK, member.content, trigger=member.trigger).text


@dataclass(frozen=True)
class PoolClustering:
    """The current user playbooks of one agent version and type."""

    agent_version: str
    name: str
    settings: PlaybookAggregatorConfig
    store: Store
    embedder: Embedder

    async def cluster(self, heartbeat: Heartbeat, *, from_scratch: bool) -> Json:
        """Assigns every member to a cluster. Returns the number of members, of clusters with enough support, and
        which clusters changed.

        With `from_scratch` all members are clustered again, and clusters that failed often are tried again.
        """
        pool, clusters, new = await self.store.read(self._read_state)
        count = len(new) + sum(cluster.size for cluster in clusters.values())
        if from_scratch or must_recluster(pool, count, self.embedder.name, self.settings.clustering_similarity):
            return await self._recluster(pool, heartbeat, retry_failed=from_scratch)
        return await self._extend(pool, clusters, new, heartbeat)

    def _read_state(self, tx: Tx) -> tuple[Pool, dict[int, Cluster], list[Member]]:
        pool = tx.pools.get(self.agent_version, self.name)
        return pool, tx.pools.clusters(self.agent_version, self.name), self._members(tx, UNASSIGNED)

    def _members(self, tx: Tx, clusters: Collection[int] | None = None) -> list[Member]:
        members = tx.pools.members(self.agent_version, self.name, self.embedder.name, clusters)
        return [member for member in members if member.content.strip()]

    async def _recluster(self, pool: Pool, heartbeat: Heartbeat, *, retry_failed: bool) -> Json:
        members = await self.store.read(self._members)
        vectors = await vectors_of(members, self.embedder, heartbeat)
        similarity = self.settings.clustering_similarity
        unrelated = 0.0 if similarity else min(MOST_UNRELATED, max(0.0, (await calibrate(self.embedder)).mean))

        def compute() -> tuple[Assignment, dict[int, list[Member]], dict[int, bytes]]:
            assignment = assign(members, vectors, pool.clusters, similarity, unrelated)
            numbers = assignment.numbers
            return assignment, by_cluster(members, numbers), centroid_bytes(members, vectors, numbers)

        assignment, clusters, centroids = await asyncio.to_thread(compute)

        def put(tx: Tx) -> tuple[list[Cluster], list[int]]:
            numbers = assignment.numbers
            tx.pools.assign({row.id: numbers[row.id] for row in members if numbers[row.id] != row.cluster})
            states = self._states(tx, retry_failed=retry_failed)
            rows = _cluster_rows(clusters, centroids, states)
            tx.pools.replace_clusters(self.agent_version, self.name, rows)
            last, similarity = assignment.last, assignment.similarity
            self._update_pool(tx, pool, clusters=last, similarity=similarity, grouped=len(members))
            self._assign_successors(tx, clusters)
            return rows, changed_clusters(clusters, states, self.settings, retry_failed=retry_failed)

        rows, changed = await self.store.write(put)
        return self._result(len(members), rows, changed)

    async def _extend(self, pool: Pool, known: dict[int, Cluster], new: Sequence[Member], heartbeat: Heartbeat) -> Json:
        vectors = await vectors_of(new, self.embedder, heartbeat)
        numbers, previous = await self._join_existing(pool, known, new, vectors)
        rest = [place for place, member in enumerate(new) if member.id not in numbers]
        unjoined = [new[place] for place in rest]
        assignment = await asyncio.to_thread(assign, unjoined, vectors[rest], pool.clusters, pool.similarity)
        numbers |= assignment.numbers
        joined = by_cluster(new, numbers)
        touched = {number: [*previous.get(number, []), *members] for number, members in joined.items()}
        touched_members = [member for members in touched.values() for member in members]
        rows = await vectors_of(touched_members, self.embedder, heartbeat)
        all_numbers = {**{member.id: member.cluster for member in touched_members}, **numbers}
        centroids = centroid_bytes(touched_members, rows, all_numbers)
        updated = {cluster.number: cluster for cluster in _cluster_rows(touched, centroids, known)}

        def put(tx: Tx) -> list[int]:
            tx.pools.assign(numbers)
            tx.pools.put_clusters(self.agent_version, self.name, *updated.values())
            self._update_pool(tx, pool, clusters=assignment.last)
            return changed_clusters(touched, known, self.settings, retry_failed=False)

        changed = await self.store.write(put)
        clusters = {**known, **updated}
        untouched = (cluster for number, cluster in clusters.items() if number not in touched)
        members = sum(cluster.size for cluster in clusters.values())
        return self._result(members, clusters.values(), [*changed, *unanswered_clusters(untouched, self.settings)])

    async def _join_existing(
        self, pool: Pool, known: dict[int, Cluster], new: Sequence[Member], vectors: Vectors
    ) -> tuple[dict[int, int], dict[int, list[Member]]]:
        """Which cluster each new member joins, if any, and the previous members of those clusters."""
        centroids = Centroids.of(known.values(), self.embedder.dimensions)
        nearest = await asyncio.to_thread(centroids.nearest, vectors, pool.similarity)
        previous = await self._read_members({number for number in nearest if number})
        joined: dict[int, int] = {}
        members: dict[int, list[Member]] = {number: list(rows) for number, rows in previous.items()}
        for member, vector, nearest_number in zip(new, vectors, nearest, strict=True):
            number, tried = nearest_number, set[int]()
            while number is not None and any(members_contradict(member, other) for other in members[number]):
                tried.add(number)
                number = centroids.next_best(vector, pool.similarity, tried) if len(tried) < MOST_TRIES else None
                if number is not None and number not in members:
                    previous |= await self._read_members({number})
                    members[number] = list(previous[number])
            if number is not None:
                joined[member.id] = number
                members[number].append(member)
        return joined, previous

    async def _read_members(self, numbers: set[int]) -> dict[int, list[Member]]:
        if not numbers:
            return {}
        members = await self.store.read(lambda tx: self._members(tx, numbers))
        clusters = by_cluster(members, {member.id: member.cluster for member in members})
        return {number: clusters.get(number, []) for number in numbers}

    def _result(self, members: int, clusters: Iterable[Cluster], changed: Sequence[int]) -> Json:
        supported = sum(Support(cluster.statements, cluster.users).meets(self.settings) for cluster in clusters)
        return {"members": members, "clusters": supported, "changed": list(changed)}

    def _states(self, tx: Tx, *, retry_failed: bool) -> dict[int, Cluster]:
        """With `retry_failed`, clusters whose playbook somebody deleted count as new."""
        states = tx.pools.clusters(self.agent_version, self.name)
        if not retry_failed:
            return states
        stored = tx.learnings.many([state.playbook_id for state in states.values() if state.playbook_id])
        return {n: state for n, state in states.items() if not state.playbook_id or state.playbook_id in stored}

    def _update_pool(self, tx: Tx, seen: Pool, **values: float) -> None:
        """What was learned during the computation still counts as new."""
        now = tx.pools.get(self.agent_version, self.name)
        fresh = max(0, now.fresh - seen.fresh)
        tx.pools.put(replace(now, fresh=fresh, model=self.embedder.name, **values))  # type: ignore[arg-type]

    def _assign_successors(self, tx: Tx, clusters: Mapping[int, Sequence[Member]]) -> None:
        """Agent playbooks whose cluster is gone move to the cluster where most of their sources are."""
        where = LearningFilter(Kind.AGENT_PLAYBOOK, agent_version=self.agent_version, name=self.name)
        lost = {row.id: row for row in all_pages(tx, where) if row.cluster and row.cluster not in clusters}
        sources = {
            number: [window["user_playbook_id"] for window in row.details.get("source_windows", [])]
            for number, row in lost.items()
        }
        tx.pools.assign(successors(clusters, sources))


def _cluster_rows(
    clusters: Mapping[int, Sequence[Member]], centroids: Mapping[int, bytes], states: Mapping[int, Cluster]
) -> list[Cluster]:
    return [
        with_support(replace(states.get(number, Cluster(number)), centre=centroids[number]), members)
        for number, members in clusters.items()
    ]
