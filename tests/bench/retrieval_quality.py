"""How often the right rows are found: by words, by vectors, by rank fusion and by ours, on the shared sets.

The product's own `search` answers, with its pool; only the rows lie in a database of their own.
`python -m tests.bench.retrieval_quality` measures the sets of the quality table and fifteen languages with the
default embedder and with two poor ones; `… further` the further sets too, which takes some minutes of embedding.
"""

import asyncio
import re
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, create_engine

from reflexio.models.search import SearchMode
from reflexio.ports.storage import Matched, QueryVector
from reflexio.providers.embedding.local import LocalEmbedder
from reflexio.retrieval.calibration import QUESTIONS, Calibration, calibration_of
from reflexio.retrieval.query import without_names
from reflexio.retrieval.search import LEAST_POOL, search
from reflexio.retrieval.search import SearchQuery as Asked
from reflexio.storage.fulltext.index import FulltextIndex, FulltextRow
from reflexio.storage.fulltext.terms import TermScope
from reflexio.storage.vectors.index import VectorIndex
from tests.bench.report import Figure
from tests.bench.retrieval_sets import DATA, FURTHER, LANGUAGES, REQUIRED, Question, Shelf

Vectors = NDArray[np.float32]
Embed = Callable[[Sequence[str]], Vectors]

AT_LEAST = {
    "LoCoMo turns": (0.67,),
    "LoCoMo observations": (0.78,),
    "PrefEval": (0.86, 0.99),
    "HumanEval lessons": (0.93, 0.97),
}
METHODS = ("words", "vectors", "rank fusion", "ours")
MODES = {"words": SearchMode.FTS, "vectors": SearchMode.VECTOR, "ours": SearchMode.HYBRID}
FULLTEXT = FulltextIndex("bench")
DEEPEST = 10


@dataclass(frozen=True, slots=True)
class Quality:
    """Recall on one set: at 10 for LoCoMo, else of the first and of the first five, by method."""

    name: str
    embedder: str
    recall: dict[str, tuple[float, ...]]

    def __str__(self) -> str:
        cells = ["/".join(f"{value:.3f}" for value in self.recall[method]) for method in METHODS]
        required = "/".join(f"{value:.2f}" for value in AT_LEAST.get(self.name, ()))
        shown = required if self.embedder == "local" else ""
        return f"{self.name:20} {self.embedder:8} " + " ".join(f"{cell:12}" for cell in [*cells, shown])


def measure(*, further: bool = False) -> list[Quality]:
    """The table, printed as it grows; without the sets of the shared data where that is not."""
    if not DATA.exists():
        print("retrieval quality: the shared data is not here, languages only")
    shared = REQUIRED | (FURTHER if further else {}) if DATA.exists() else {}
    sets = {name: list(make()) for name, make in (shared | LANGUAGES).items()}
    exam = [sentence for question in QUESTIONS for sentence in question]
    print(f"{'set':20} {'embedder':8} " + " ".join(f"{head:12}" for head in [*METHODS, "at least"]))
    table = []
    for embedder, embed in (("local", _local(sets)), ("letters", _letters), ("chance", _chance)):
        grade = calibration_of(embed(exam))
        print(f"{embedder}: grade {grade.trust:.2f} in the exam")
        for name, shelves in sets.items():
            table.append(Quality(name, embedder, _recall(name, shelves, embed, grade)))
            print(table[-1], flush=True)
    return table


def figures() -> list[Figure]:
    """What is required of the default embedder, beside the single methods."""
    found = []
    for row in measure():
        if row.embedder != "local" or row.name not in AT_LEAST:
            continue
        for place, wanted in enumerate(AT_LEAST[row.name]):
            others = ", ".join(f"{method} {row.recall[method][place]:.3f}" for method in METHODS[:-1])
            name = f"{row.name}, {'recall@10' if len(AT_LEAST[row.name]) == 1 else ('hit@1', 'hit@5')[place]}"
            figure = Figure(name, row.recall["ours"][place], "", wanted, more_is_better=True, baseline=others)
            found.append(figure)
    return found


@dataclass(frozen=True, slots=True)
class _Searched:
    """A shelf that is indexed, as the product asks it; its rows have the ids from `first`."""

    tx: Connection
    scope: TermScope
    index: VectorIndex

    @classmethod
    def of(cls, tx: Connection, shelf: Shelf, first: int, embed: Embed) -> "_Searched":
        scope = TermScope.of("bench", "row", str(first))
        ids = range(first, first + len(shelf.rows))
        FULLTEXT.put(tx, [FulltextRow(row, scope, text) for row, text in zip(ids, shelf.rows, strict=True)])
        vectors = embed(shelf.rows)
        index = VectorIndex(vectors.shape[1])
        index.add(ids, [str(first)] * len(ids), vectors)
        return cls(tx, scope, index)

    def by_words(self, query: str, limit: int) -> Matched:
        return FULLTEXT.match(self.tx, self.scope, query, limit)

    def by_vector(self, query: QueryVector, limit: int, also: Sequence[int] = ()) -> Matched:
        near = self.index.nearest(query.numbers, limit)
        cosine = dict(near.pairs) | dict(self.index.nearest(query.numbers, len(also), within=also).pairs)
        return Matched(tuple(cosine), tuple(cosine.values()), mean=near.mean, spread=near.spread)

    def rankings(self, query: str, target: Vectors, meant: Vectors, grade: Calibration) -> dict[str, list[int]]:
        """`meant` is the query without its names, as the product embeds it where words are asked too."""
        found = {}
        for method, mode in MODES.items():
            vector = _vector(meant if mode is SearchMode.HYBRID else target)
            asked = Asked(query, vector, mode, top_k=DEEPEST, calibration=grade)
            found[method] = [hit.id for hit in search(self, asked).hits]
        return found | {"rank fusion": self._rank_fusion(query, _vector(target))}

    def _rank_fusion(self, query: str, vector: QueryVector) -> list[int]:
        sums: dict[int, float] = {}
        for ranking in (self.by_words(query, LEAST_POOL).ids, self.by_vector(vector, LEAST_POOL).ids):
            for place, row in enumerate(ranking, 1):
                sums[row] = sums.get(row, 0.0) + 1 / (60 + place)
        return sorted(sums, key=lambda row: (-sums[row], row))


def _recall(name: str, shelves: list[Shelf], embed: Embed, grade: Calibration) -> dict[str, tuple[float, ...]]:
    depths = (10,) if name.startswith("LoCoMo") else (1, 5)
    found: dict[str, list[list[float]]] = {method: [] for method in METHODS}
    engine = create_engine("sqlite://")
    with engine.connect() as tx:
        FULLTEXT.create(tx)
        first = 1
        for shelf in shelves:
            searched = _Searched.of(tx, shelf, first, embed)
            asked = embed([question.text for question in shelf.questions])
            meant = embed([without_names(question.text) for question in shelf.questions])
            for question, target, other in zip(shelf.questions, asked, meant, strict=True):
                for method, ids in searched.rankings(question.text, target, other, grade).items():
                    found[method].append([_share(question, ids[:depth], first) for depth in depths])
            first += len(shelf.rows)
    engine.dispose()
    return {method: tuple(np.mean(shares, axis=0).tolist()) for method, shares in found.items()}


def _vector(target: Vectors) -> QueryVector:
    return QueryVector("bench", tuple(target.tolist()))


def _share(question: Question, ids: list[int], first: int) -> float:
    found = {row - first for row in ids}
    return float(np.mean([bool(group & found) for group in question.wanted]))


def _local(sets: dict[str, list[Shelf]]) -> Embed:
    """The default embedder; every text is embedded once, up front."""
    texts = [sentence for question in QUESTIONS for sentence in question]
    for shelf in (shelf for shelves in sets.values() for shelf in shelves):
        asked = [question.text for question in shelf.questions]
        texts += [*shelf.rows, *asked, *map(without_names, asked)]
    known = list(dict.fromkeys(texts))
    vectors = dict(zip(known, asyncio.run(_embedded(known)), strict=True))
    return lambda wanted: np.array([vectors[text] for text in wanted])


async def _embedded(texts: list[str]) -> Vectors:
    embedder = LocalEmbedder()
    try:
        return await embedder.embed(texts)
    finally:
        await embedder.aclose()


def _letters(texts: Sequence[str]) -> Vectors:
    """A poor embedder: three and four letters in a row, hashed. It knows spelling and no meaning."""
    vectors = np.zeros((len(texts), 384), np.float32)
    for vector, text in zip(vectors, texts, strict=True):
        letters = f" {re.sub(r'[^a-z0-9]+', ' ', text.lower())} "
        for length in (3, 4):
            for at in range(len(letters) - length + 1):
                number = zlib.crc32(letters[at : at + length].encode())
                vector[number % 384] += 1 if number >> 20 & 1 else -1
    vectors = np.sign(vectors) * np.sqrt(np.abs(vectors))
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9))


def _chance(texts: Sequence[str]) -> Vectors:
    """No embedder at all: a direction at random for every text."""
    vectors = np.array([np.random.default_rng(zlib.crc32(t.encode())).standard_normal(384) for t in texts])
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


if __name__ == "__main__":
    measure(further="further" in sys.argv[1:])
