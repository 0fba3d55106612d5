"""How well playbooks are grouped, on labelled utterances taken as triggers; and how fast, on vectors like theirs."""

import asyncio
import json
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from reflexio.aggregation.clustering import Vectors, centroids, group, join
from tests.bench.report import Figure
from tests.bench.retrieval_sets import DATA, lines

Labels = NDArray[np.int64]

AT_LEAST = {"banking77": 0.45, "clinc150": 0.56, "insurance": 0.68}
ELSEWHERE = {
    "banking77": "published .158; linkage at .3/.4/.5/.6: .117/.249/.410/.481",
    "clinc150": "published .222; linkage at .3/.4/.5/.6: .472/.584/.583/.460",
    "insurance": "published .100; linkage at .3/.4/.5/.6: .324/.490/.737/.687",
}
OF_A_DRAW, LABELS_DRAWN, DRAWS = 0.65, 10, 20
FEW, ORDERS = 49, 5


@dataclass(frozen=True, slots=True)
class Labelled:
    name: str
    vectors: Vectors
    labels: Labels

    def part(self, rows: Labels) -> "Labelled":
        return Labelled(self.name, self.vectors[rows], self.labels[rows])

    def drawn(self, count: int, seed: int) -> "Labelled":
        """Some rows of ten labels."""
        chance = np.random.default_rng(seed)
        chosen = chance.permutation(self.labels.max() + 1)[:LABELS_DRAWN]
        return self.part(chance.permutation(np.flatnonzero(np.isin(self.labels, chosen)))[:count])


def clustering() -> list[Figure]:
    if not DATA.exists():
        print("clustering: quality is skipped, the shared data is not here")
        return _speed()
    sets = [_labelled(name) for name in AT_LEAST]
    return [figure for each in sets for figure in (*_quality(each), *_growth(each))] + _speed()


def rand_index(one: Labels, other: Labels) -> float:
    """Adjusted for chance: 1 for the same groups, 0 for none better than at random."""
    both, ones, others, pairs = _pairs(one, other)
    by_chance = ones * others / pairs
    most = (ones + others) / 2
    return (both - by_chance) / (most - by_chance) if most != by_chance else 1.0


def _quality(given: Labelled) -> list[Figure]:
    found = group(given.vectors)
    both, joined, true, _ = _pairs(found.labels, given.labels)
    shown = (
        f"precision {both / joined:.2f}, recall {both / true:.2f} at {found.similarity:.2f}; {ELSEWHERE[given.name]}"
    )
    whole = Figure(
        f"{given.name}, ARI, {len(given.labels)} items",
        rand_index(found.labels, given.labels),
        "",
        AT_LEAST[given.name],
        more_is_better=True,
        baseline=shown,
    )
    return [whole, _of_draws(given, 40), _of_draws(given, 200)]


def _of_draws(given: Labelled, count: int) -> Figure:
    draws = [given.drawn(count, seed) for seed in range(DRAWS)]
    reached = [rand_index(group(each.vectors).labels, each.labels) for each in draws]
    return Figure(
        f"{given.name}, ARI, {DRAWS} draws of {count} items of {LABELS_DRAWN} labels",
        float(np.mean(reached)),
        "",
        OF_A_DRAW,
        more_is_better=True,
        baseline=f"lowest {min(reached):.2f}, highest {max(reached):.2f}",
    )


def _growth(given: Labelled) -> list[Figure]:
    """Whether the first items stay together when there are more: one more, and all. Means over some orders."""
    orders = [np.random.default_rng(seed).permutation(len(given.labels)) for seed in range(ORDERS)]
    alone = [group(given.vectors[rows[:FEW]]) for rows in orders]
    figures = []
    for count in (FEW + 1, len(given.labels)):
        among = [group(given.vectors[rows[:count]]) for rows in orders]
        kept = [rand_index(few.labels, all_.labels[:FEW]) for few, all_ in zip(alone, among, strict=True)]
        cuts = " and ".join(f"{np.mean([each.similarity for each in found]):.3f}" for found in (alone, among))
        name = f"{given.name}, {FEW} items alone and among {count}, ARI"
        figures.append(Figure(name, float(np.mean(kept)), "", baseline=f"joined from {cuts}"))
    return figures


def _pairs(one: Labels, other: Labels) -> tuple[float, float, float, float]:
    """How many pairs of rows are together in both, in one, in the other; and how many there are."""
    table = np.zeros((one.max() + 1, other.max() + 1))
    np.add.at(table, (one, other), 1)
    counts = (table, table.sum(axis=1), table.sum(axis=0), np.array(float(len(one))))
    both, ones, others, pairs = (float((each * (each - 1)).sum() / 2) for each in counts)
    return both, ones, others, pairs


def _labelled(name: str) -> Labelled:
    rows = lines(f"clustering/{name}.jsonl")
    labels = np.unique([row["label"] for row in rows], return_inverse=True)[1]
    return Labelled(name, asyncio.run(_embedded([row["text"] for row in rows])), labels)


async def _embedded(texts: list[str]) -> Vectors:
    from reflexio.providers.embedding.local import LocalEmbedder

    embedder = LocalEmbedder()
    try:
        return await embedder.embed(texts)
    finally:
        await embedder.aclose()


def _speed() -> list[Figure]:
    """Measured in processes of their own, so that the memory is seen."""
    found = []
    for count in ("10000", "100000"):
        measured = subprocess.run(
            [sys.executable, "-m", "tests.bench.clustering", count], check=True, capture_output=True
        )
        found += [Figure(**figure) for figure in json.loads(measured.stdout)]
    return found


def measure(count: int) -> list[Figure]:
    vectors = _like_playbooks(count)
    began = time.perf_counter()
    found = group(vectors)
    taken = time.perf_counter() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    means, sizes = centroids(vectors, found.labels)
    began = time.perf_counter()
    join(vectors[:100], means, sizes, found.similarity)
    joined = time.perf_counter() - began
    began = time.perf_counter()
    join(vectors[:100], vectors, np.ones(count, np.int64), found.similarity)
    alone = time.perf_counter() - began
    groups = f"{len(sizes)} groups"
    return [
        Figure(f"{count} playbooks grouped", taken, "s", 3 if count <= 10_000 else 60, baseline=groups),
        Figure(f"memory of the process, {count} vectors included", memory, "MB", 1000),
        Figure(f"100 new into {count}", joined, "s", 1, baseline=groups),
        Figure(f"100 new into {count} that are all alone", alone, "s", 1),
    ]


def _like_playbooks(count: int) -> Vectors:
    """Matters within domains, forty rows a matter, as alike as utterances of one intent are."""
    chance = np.random.default_rng(0)
    domains = _unit(chance.standard_normal((20, 384), np.float32))
    matters = count // 40
    middles = _unit(0.6 * domains[np.arange(matters) % 20] + _unit(chance.standard_normal((matters, 384), np.float32)))
    vectors = np.empty((count, 384), np.float32)
    for start in range(0, count, 1000):
        noise = 0.9 * _unit(chance.standard_normal((min(1000, count - start), 384), np.float32))
        vectors[start : start + 1000] = _unit(middles[np.arange(start, start + len(noise)) % matters] + noise)
    return vectors


def _unit(rows: Vectors) -> Vectors:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


if __name__ == "__main__":
    print(json.dumps([asdict(figure) for figure in measure(int(sys.argv[1]))]))
