"""Which user playbooks belong together, and which clusters have changed since the learner last saw them.

A cluster keeps its number as long as most of it stays together: what did not change is recognised and costs nothing.
Now and then all are grouped anew; in between, new ones join the cluster they are nearest to, or wait in one of their
own.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from reflexio.language.contradiction import contradicts
from reflexio.learning.cluster import Vectors, centroids, group, join
from reflexio.ports.storage import Cluster, Member, Pool

GROWTH = 1.5
"""All are grouped anew when there are so many times as many as the last time: on the whole, each one few times."""
MOST_ATTEMPTS = 6


@dataclass(frozen=True)
class Layout:
    """Which cluster each playbook belongs to, by its number, and the last number that was given."""

    numbers: dict[int, int]
    similarity: float
    last: int


def is_outgrown(pool: Pool, count: int, model: str, similarity: float | None) -> bool:
    """Whether a pool must be grouped anew: it has grown much, or its vectors or its owner's wish are others now."""
    is_other = pool.model != model or similarity not in (None, pool.similarity)
    return is_other or not pool.similarity or count >= GROWTH * pool.grouped


def grouped(
    members: Sequence[Member], vectors: Vectors, last: int, similarity: float | None, strangers: float = 0.0
) -> Layout:
    """`similarity` is what somebody decided; else the corpus decides, knowing how alike its embedder holds
    `strangers`."""
    if not members:
        return Layout({}, similarity or 0.0, last)

    def is_opposed(one: int, other: int) -> bool:
        return against(members[one], members[other])

    made = group(vectors, similarity=similarity, opposed=is_opposed, strangers=strangers)
    labels = made.labels.tolist()
    names, last = _named(members, labels, last)
    numbers = {each.id: names[label] for each, label in zip(members, labels, strict=True)}
    return Layout(numbers, made.similarity, last)


def against(one: Member, other: Member) -> bool:
    return contradicts(one.content, other.content)


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


@dataclass(frozen=True)
class Centres:
    """The middles of the clusters there are, to hold new playbooks against: numbers, rows and sizes in one order."""

    numbers: list[int]
    rows: Vectors
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, clusters: Iterable[Cluster], dimensions: int) -> "Centres":
        held = [each for each in clusters if each.centre]
        rows = np.frombuffer(b"".join(each.centre or b"" for each in held), np.float16).reshape(-1, dimensions)
        return cls([each.number for each in held], rows.astype(np.float32), np.array([each.size for each in held]))

    def nearest(self, new: Vectors, similarity: float) -> list[int | None]:
        found = join(new, self.rows, self.sizes, similarity)
        return [None if place is None else self.numbers[place] for place in found]

    def next_best(self, vector: Vectors, similarity: float, but: Collection[int]) -> int | None:
        places = np.array([place for place, number in enumerate(self.numbers) if number not in but], np.int64)
        (found,) = join(vector[None, :], self.rows[places], self.sizes[places], similarity)
        return None if found is None else self.numbers[int(places[found])]


def middles(members: Sequence[Member], vectors: Vectors, numbers: Mapping[int, int]) -> dict[int, bytes]:
    """The mean of each cluster in half precision, as it is stored."""
    if not members:
        return {}
    which = sorted({numbers[each.id] for each in members})
    place = {number: at for at, number in enumerate(which)}
    means, _ = centroids(vectors, np.array([place[numbers[each.id]] for each in members], np.int64))
    return {number: mean.astype(np.float16).tobytes() for number, mean in zip(which, means, strict=True)}


def unit(rows: Vectors) -> Vectors:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1), np.float32)


def inside(members: Iterable[Member], numbers: Mapping[int, int]) -> dict[int, list[Member]]:
    """Members by cluster, largest cluster first."""
    found: dict[int, list[Member]] = defaultdict(list)
    for each in members:
        found[numbers[each.id]].append(each)
    return dict(sorted(found.items(), key=lambda pair: (-len(pair[1]), pair[0])))


def fingerprint(members: Iterable[Member]) -> str:
    """Changes whenever a member comes, goes or is edited."""
    told = ",".join(f"{each.id}:{each.modified_at}" for each in sorted(members, key=lambda each: each.id))
    return blake2b(told.encode(), digest_size=12).hexdigest()


def changed(
    clusters: Mapping[int, Sequence[Member]], states: Mapping[int, Cluster], least: int, *, patient: bool
) -> list[int]:
    """Clusters that are large enough and not as the learner last saw them.

    One that failed again and again is left alone until it changes; whoever is not `patient` has it tried all the same.
    """
    large = {number: fingerprint(members) for number, members in clusters.items() if len(members) >= least}
    return [number for number, now in large.items() if _is_news(states.get(number, Cluster(number)), now, patient)]


def _is_news(state: Cluster, now: str, patient: bool) -> bool:
    is_given_up = state.failed == now and state.attempts >= MOST_ATTEMPTS
    return state.written != now and not (patient and is_given_up)


def left_over(states: Iterable[Cluster], least: int) -> list[int]:
    """Clusters that the learner still owes an answer, though nothing new came to them."""
    owed = (each for each in states if each.size >= least and (each.failed or not each.written))
    return [each.number for each in owed if each.attempts < MOST_ATTEMPTS]


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
