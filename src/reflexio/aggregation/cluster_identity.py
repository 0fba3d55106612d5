"""The identity of clusters over time: their numbers, centroids, changes and successors.

A cluster keeps its number as long as most of its members stay together, so that an unchanged cluster costs nothing.
After much growth all members are clustered from scratch; in between, new members join the nearest cluster or start
one of their own.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from reflexio.aggregation.clustering import Vectors, centroids, group, join
from reflexio.aggregation.support import Support, support_of
from reflexio.language.contradiction import contradicts
from reflexio.models.config import PlaybookAggregatorConfig
from reflexio.ports.storage import Cluster, Member, Pool

GROWTH = 1.5
"""All members are clustered from scratch when the pool has grown by this factor since the last time."""
MOST_ATTEMPTS = 6


@dataclass(frozen=True)
class Assignment:
    """The cluster number of each playbook, the similarity that was used, and the last number that was assigned."""

    numbers: dict[int, int]
    similarity: float
    last: int


def must_recluster(pool: Pool, count: int, model: str, similarity: float | None) -> bool:
    """Whether a pool must be clustered from scratch: it has grown, or its embedder or configuration changed."""
    is_outdated = pool.model != model or similarity not in (None, pool.similarity)
    return is_outdated or not pool.similarity or count >= GROWTH * pool.grouped


def assign(
    members: Sequence[Member], vectors: Vectors, last: int, similarity: float | None, unrelated: float = 0.0
) -> Assignment:
    """Clusters all members. Without a configured `similarity` the corpus decides, given the mean cosine of
    `unrelated` texts."""
    if not members:
        return Assignment({}, similarity or 0.0, last)

    def is_contradiction(one: int, other: int) -> bool:
        return members_contradict(members[one], members[other])

    grouping = group(vectors, similarity=similarity, contradicts=is_contradiction, unrelated=unrelated)
    labels = grouping.labels.tolist()
    number_of, last = _number_labels(members, labels, last)
    numbers = {member.id: number_of[label] for member, label in zip(members, labels, strict=True)}
    return Assignment(numbers, grouping.similarity, last)


def members_contradict(one: Member, other: Member) -> bool:
    return contradicts(one.content, other.content)


def _number_labels(members: Sequence[Member], labels: Sequence[int], last: int) -> tuple[dict[int, int], int]:
    """A number for each label: the previous number that it shares most members with, or else a new one."""
    shared = Counter((label, member.cluster) for member, label in zip(members, labels, strict=True) if member.cluster)
    numbers: dict[int, int] = {}
    taken: set[int] = set()
    for (label, number), _ in sorted(shared.items(), key=lambda pair: (-pair[1], pair[0][1], pair[0][0])):
        if label not in numbers and number not in taken:
            numbers[label] = number
            taken.add(number)
    for label in dict.fromkeys(labels):
        if label not in numbers:
            last += 1
            numbers[label] = last
    return numbers, last


@dataclass(frozen=True)
class Centroids:
    """The centroids of the existing clusters: numbers, vectors and sizes in one order."""

    numbers: list[int]
    rows: Vectors
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, clusters: Iterable[Cluster], dimensions: int) -> "Centroids":
        stored = [cluster for cluster in clusters if cluster.centre]
        rows = np.frombuffer(b"".join(cluster.centre or b"" for cluster in stored), np.float16)
        sizes = np.array([cluster.size for cluster in stored])
        return cls([cluster.number for cluster in stored], rows.reshape(-1, dimensions).astype(np.float32), sizes)

    def nearest(self, new: Vectors, similarity: float) -> list[int | None]:
        places = join(new, self.rows, self.sizes, similarity)
        return [None if place is None else self.numbers[place] for place in places]

    def next_best(self, vector: Vectors, similarity: float, excluded: Collection[int]) -> int | None:
        places = np.array([place for place, number in enumerate(self.numbers) if number not in excluded], np.int64)
        (best,) = join(vector[None, :], self.rows[places], self.sizes[places], similarity)
        return None if best is None else self.numbers[int(places[best])]


def centroid_bytes(members: Sequence[Member], vectors: Vectors, numbers: Mapping[int, int]) -> dict[int, bytes]:
    """The centroid of each cluster in half precision, as it is stored."""
    if not members:
        return {}
    ordered = sorted({numbers[member.id] for member in members})
    place = {number: at for at, number in enumerate(ordered)}
    means, _ = centroids(vectors, np.array([place[numbers[member.id]] for member in members], np.int64))
    return {number: mean.astype(np.float16).tobytes() for number, mean in zip(ordered, means, strict=True)}


def unit_length(rows: Vectors) -> Vectors:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1), np.float32)


def by_cluster(members: Iterable[Member], numbers: Mapping[int, int]) -> dict[int, list[Member]]:
    """Members by cluster, largest cluster first."""
    clusters: dict[int, list[Member]] = defaultdict(list)
    for member in members:
        clusters[numbers[member.id]].append(member)
    return dict(sorted(clusters.items(), key=lambda item: (-len(item[1]), item[0])))


def fingerprint(members: Iterable[Member]) -> str:
    """Changes whenever a member is added, removed or edited."""
    state = ",".join(f"{row.id}:{row.modified_at}" for row in sorted(members, key=lambda member: member.id))
    return blake2b(state.encode(), digest_size=12).hexdigest()


def changed_clusters(
    clusters: Mapping[int, Sequence[Member]],
    states: Mapping[int, Cluster],
    settings: PlaybookAggregatorConfig,
    *,
    retry_failed: bool,
) -> list[int]:
    """Clusters that are supported well enough and differ from what the learner last saw.

    A cluster that failed again and again is skipped until it changes, unless `retry_failed` is set.
    """
    changed = []
    for number, members in clusters.items():
        if not support_of(members).meets(settings):
            continue
        current = fingerprint(members)
        state = states.get(number, Cluster(number))
        is_given_up = state.failed == current and state.attempts >= MOST_ATTEMPTS
        if state.written != current and (retry_failed or not is_given_up):
            changed.append(number)
    return changed


def unanswered_clusters(states: Iterable[Cluster], settings: PlaybookAggregatorConfig) -> list[int]:
    """Clusters without new members that the learner has not summarised yet."""
    supported = (state for state in states if Support(state.statements, state.users).meets(settings))
    unanswered = (state for state in supported if state.failed or not state.written)
    return [state.number for state in unanswered if state.attempts < MOST_ATTEMPTS]


def successors(clusters: Mapping[int, Sequence[Member]], sources: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """For each agent playbook whose cluster is gone, the cluster that now has most of its source user playbooks."""
    cluster_of = {member.id: number for number, members in clusters.items() for member in members}
    successor = {}
    for playbook, source_ids in sources.items():
        counts = Counter(cluster_of[source] for source in source_ids if source in cluster_of)
        if counts:
            successor[playbook] = min(counts, key=lambda number: (-counts[number], number))
    return successor
