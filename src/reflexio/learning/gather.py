"""A pool is laid out anew: its members are read, clustered and placed, and the clusters that changed are named."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from reflexio.learning.aggregate import Change, Layout, arrange, changed, heirs, inside, unit
from reflexio.learning.cluster import Vectors
from reflexio.models.config import PlaybookAggregatorConfig
from reflexio.models.learning import Kind, Learning
from reflexio.ports.embedding import Embedder
from reflexio.ports.storage import Cluster, LearningFilter, Member, Pool, Store, Tx
from reflexio.ports.work import Json
from reflexio.retrieval.walk import every

BATCH = 64
Alive = Callable[[], Awaitable[object]]


async def vectors_of(members: Sequence[Member], embedder: Embedder, alive: Alive | None = None) -> Vectors:
    """The vectors of all, in their order; those that are not stored yet are made. `alive` is called now and then."""
    rows = np.zeros((len(members), embedder.dimensions), np.float32)
    for place, each in enumerate(members):
        if each.vector is not None:
            rows[place] = np.frombuffer(each.vector, np.float16)
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
        members, pool = await self.store.read(self._look)
        vectors = await vectors_of(members, self.embedder, alive)
        wanted = self.settings.clustering_similarity
        layout = await asyncio.to_thread(arrange, members, vectors, pool, similarity=wanted, anew=anew)
        clusters = inside(members, layout.numbers)
        least = self.settings.min_cluster_size

        def put(tx: Tx) -> list[Change]:
            tx.pools.place({each.id: number for each in members if (number := layout.numbers[each.id]) != each.cluster})
            self._settle(tx, layout, seen=pool)
            found = changed(clusters, self._states(tx, anew=anew), least, patient=not anew)
            if layout.is_new:
                self._inherit(tx, clusters)
            return found

        found = await self.store.write(put)
        return {
            "members": len(members),
            "clusters": sum(len(each) >= least for each in clusters.values()),
            "changed": [asdict(each) for each in found],
        }

    def _look(self, tx: Tx) -> tuple[list[Member], Pool]:
        members = tx.pools.members(self.agent_version, self.name, self.embedder.name)
        said = [each for each in members if each.content.strip()]
        return said, tx.pools.get(self.agent_version, self.name)

    def _states(self, tx: Tx, *, anew: bool) -> dict[int, Cluster]:
        """Whoever asks for all anew gets also those that somebody deleted."""
        states = tx.pools.clusters(self.agent_version, self.name)
        if not anew:
            return states
        there = tx.learnings.many([each.playbook_id for each in states.values() if each.playbook_id])
        return {number: each for number, each in states.items() if not each.playbook_id or each.playbook_id in there}

    def _settle(self, tx: Tx, layout: Layout, *, seen: Pool) -> None:
        """What was learned while all this was computed still counts as new."""
        now = tx.pools.get(self.agent_version, self.name)
        tx.pools.put(
            replace(
                now,
                fresh=max(0, now.fresh - seen.fresh),
                similarity=layout.similarity,
                grouped=layout.grouped,
                clusters=layout.last,
            )
        )

    def _inherit(self, tx: Tx, clusters: dict[int, list[Member]]) -> None:
        """Playbooks whose cluster is gone follow what they were made of: whatever is made there replaces them."""
        where = LearningFilter(Kind.AGENT_PLAYBOOK, agent_version=self.agent_version, name=self.name)
        lost = {row.id: row for row in every(tx, where) if row.cluster and row.cluster not in clusters}
        made_of = {
            number: [each["user_playbook_id"] for each in row.details.get("source_windows", [])]
            for number, row in lost.items()
        }
        tx.pools.place(heirs(clusters, made_of))
