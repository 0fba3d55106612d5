"""Which user playbooks belong together, and which clusters have changed since the learner last saw them.

A cluster keeps its number as long as most of it stays together: what did not change is recognised and costs nothing.
Now and then all are grouped anew; in between, new ones join the cluster they are nearest to, or wait in one of their
own.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from reflexio.learning.cluster import Vectors, centroids, group, join
from reflexio.learning.opposition import opposed
from reflexio.ports.storage import Cluster, Member, Pool

GROWTH = 1.5
"""All are grouped anew when there are so many times as many as the last time: on the whole, each one few times."""
MOST_ATTEMPTS = 6
MOST_TRIES = 3
"""Clusters that one new playbook is held against, when it contradicts the nearest."""


@dataclass(frozen=True)
class Layout:
    """Which cluster each playbook belongs to, by number, and what the next time needs to know.

    `is_new` when all were grouped, so that clusters may have parted or merged.
    """

    numbers: dict[int, int]
    similarity: float
    grouped: int
    last: int
    is_new: bool = True


@dataclass(frozen=True)
class Change:
    """A cluster that the learner has not seen as it is now."""

    number: int
    fingerprint: str


def fingerprint(members: Iterable[Member]) -> str:
    """Changes whenever a member comes, goes or is edited."""
    told = ",".join(f"{each.id}:{each.modified_at}" for each in sorted(members, key=lambda each: each.id))
    return blake2b(told.encode(), digest_size=12).hexdigest()


def arrange(members: Sequence[Member], vectors: Vectors, pool: Pool, *, similarity: float | None, anew: bool) -> Layout:
    """The layout of a pool. `similarity` is what its owner configured; else the corpus decides."""
    alone = similarity is None and not pool.similarity
    if anew or alone or len(members) >= GROWTH * pool.grouped:
        return _anew(members, vectors, pool, similarity)
    return _joined(members, vectors, pool, similarity or pool.similarity)


def _anew(members: Sequence[Member], vectors: Vectors, pool: Pool, similarity: float | None) -> Layout:
    if not members:
        return Layout({}, pool.similarity, 0, pool.clusters)
    made = group(vectors, similarity=similarity, opposed=_opposed(members))
    labels = made.labels.tolist()
    names, last = _named(members, labels, pool.clusters)
    numbers = {each.id: names[label] for each, label in zip(members, labels, strict=True)}
    return Layout(numbers, made.similarity, len(members), last)


def _joined(members: Sequence[Member], vectors: Vectors, pool: Pool, similarity: float) -> Layout:
    numbers = {each.id: each.cluster for each in members if each.cluster}
    new = [place for place, each in enumerate(members) if not each.cluster]
    held = _Clusters.of(members, vectors)
    left = []
    for place, nearest in zip(new, held.nearest(vectors[new], similarity), strict=True):
        number = held.agreeing(members[place], vectors[place], nearest, similarity)
        if number is None:
            left.append(place)
        else:
            numbers[members[place].id] = number
            held.members[number].append(members[place])
    last = pool.clusters
    if left:
        waiting = [members[place] for place in left]
        made = group(vectors[left], similarity=similarity, opposed=_opposed(waiting))
        names, last = _named(waiting, made.labels.tolist(), last)
        numbers |= {each.id: names[label] for each, label in zip(waiting, made.labels.tolist(), strict=True)}
    return Layout(numbers, pool.similarity or similarity, pool.grouped, last, is_new=False)


@dataclass(frozen=True)
class _Clusters:
    """The clusters there are: numbers, centres and sizes in the same order, and who is in each."""

    numbers: list[int]
    centres: Vectors
    sizes: NDArray[np.int64]
    members: dict[int, list[Member]]

    @classmethod
    def of(cls, members: Sequence[Member], vectors: Vectors) -> "_Clusters":
        places = [place for place, each in enumerate(members) if each.cluster]
        inside: dict[int, list[Member]] = defaultdict(list)
        for place in places:
            inside[members[place].cluster].append(members[place])
        numbers = sorted(inside)
        at = {number: index for index, number in enumerate(numbers)}
        index = np.array([at[members[place].cluster] for place in places], np.int64)
        centres, sizes = centroids(vectors[places], index)
        return cls(numbers, centres, sizes, inside)

    def nearest(self, new: Vectors, similarity: float) -> list[int | None]:
        if not self.numbers:
            return [None] * len(new)
        found = join(new, self.centres, self.sizes, similarity)
        return [None if place is None else self.numbers[place] for place in found]

    def agreeing(self, new: Member, vector: Vectors, number: int | None, similarity: float) -> int | None:
        """The nearest cluster in which nobody says the opposite."""
        against: list[int] = []
        while number is not None and len(against) < MOST_TRIES:
            if not any(_against(new, each) for each in self.members[number]):
                return number
            against.append(self.numbers.index(number))
            others = np.delete(np.arange(len(self.numbers)), against)
            (place,) = join(vector[None, :], self.centres[others], self.sizes[others], similarity)
            number = None if place is None else self.numbers[int(others[place])]
        return None


def unit(rows: Vectors) -> Vectors:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1), np.float32)


def _opposed(members: Sequence[Member]) -> Callable[[int, int], bool]:
    return lambda one, other: _against(members[one], members[other])


def _against(one: Member, other: Member) -> bool:
    return opposed(one.content, other.content)


def _named(members: Sequence[Member], labels: Sequence[int], last: int) -> tuple[dict[int, int], int]:
    """A number for each label: the one that most of its members had, where they are most of that; else a new one."""
    shared = Counter((label, each.cluster) for each, label in zip(members, labels, strict=True) if each.cluster)
    names: dict[int, int] = {}
    taken: set[int] = set()
    for (label, number), _ in sorted(shared.items(), key=lambda pair: (-pair[1], pair[0][1], pair[0][0])):
        if label not in names and number not in taken:
            names[label] = number
            taken.add(number)
    for label in dict.fromkeys(labels):
        if label not in names:
            last += 1
            names[label] = last
    return names, last


def inside(members: Iterable[Member], numbers: Mapping[int, int]) -> dict[int, list[Member]]:
    """Members by cluster, largest cluster first."""
    found: dict[int, list[Member]] = defaultdict(list)
    for each in members:
        found[numbers[each.id]].append(each)
    return dict(sorted(found.items(), key=lambda pair: (-len(pair[1]), pair[0])))


def changed(
    clusters: Mapping[int, Sequence[Member]], states: Mapping[int, Cluster], least: int, *, patient: bool
) -> list[Change]:
    """Clusters that are large enough and not as the learner last saw them.

    One that failed again and again is left alone until it changes; whoever is not `patient` has it tried all the same.
    """
    found = [Change(number, fingerprint(members)) for number, members in clusters.items() if len(members) >= least]
    return [
        each
        for each in found
        if (state := states.get(each.number, Cluster(each.number))).written != each.fingerprint
        and not (patient and state.failed == each.fingerprint and state.attempts >= MOST_ATTEMPTS)
    ]


def heirs(clusters: Mapping[int, Sequence[Member]], made_of: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """For each agent playbook whose cluster is gone, the cluster where most of what it was made of is now.

    `made_of` are the user playbooks behind each.
    """
    home = {each.id: number for number, members in clusters.items() for each in members}
    found = {}
    for playbook, sources in made_of.items():
        counted = Counter(home[each] for each in sources if each in home)
        if counted:
            found[playbook] = min(counted, key=lambda number: (-counted[number], number))
    return found
