"""Recalling lessons: whether the right ones come, and how long it takes."""

import asyncio
import time
from collections.abc import Sequence
from itertools import cycle

import numpy as np
import psycopg

from reflexio.agents.attempt import Lesson
from reflexio.agents.lessons.store import MemoryLessons, VectorStoreLessons
from reflexio.agents.vectors.memory import InMemoryVectorStore
from reflexio.agents.vectors.postgres import PostgresVectorStore
from reflexio.agents.vectors.store import Chunk, VectorStore
from tests.bench.report import Figure, milliseconds
from tests.bench.retrieval_sets import DATA, lines
from tests.postgres import running_postgres

WIDTH, USERS, ASKED = 384, 1_000, 100
SIZES = {1_000: (0.3, "55 and 23 ms"), 10_000: (1.0, "584 and 230 ms"), 100_000: (15.0, "5,970 and 1,821 ms")}
MANY = 100_000


class RandomEmbedder:
    """Vectors that cost nothing to make, so that recall alone is measured."""

    name = "random"
    dimensions = WIDTH

    def __init__(self) -> None:
        self._numbers = np.random.default_rng(7)
        self._queries = cycle(self._numbers.standard_normal((ASKED, WIDTH)).tolist())

    async def embed(self, text: str) -> list[float]:
        return next(self._queries)

    async def embed_batch(self, texts: Sequence[str]) -> list[list[float]]:
        return self._numbers.standard_normal((len(texts), WIDTH)).tolist()  # type: ignore[no-any-return]


def lessons() -> list[Figure]:
    """In memory: HumanEval's recorded lessons by meaning, and random vectors by the clock."""
    return [*asyncio.run(_quality()), *asyncio.run(_speed())]


async def _quality() -> list[Figure]:
    if not DATA.exists():
        print(f"no {DATA}: the quality of recall is not measured")
        return []
    tasks = [task for task in lines("replay/humaneval.jsonl") if task["lessons"]]
    kept = MemoryLessons()
    for task in tasks:
        await kept.save([Lesson(each, trigger=task["prompt"], run_id=task["task"]) for each in task["lessons"]])
    hits = 0
    for task in tasks:
        found = await kept.recall(task["prompt"], k=5)
        hits += any(each.lesson.run_id == task["task"] for each in found)
    stored = await kept.store.count()
    archived = sum(bool(hit.chunk.metadata.get("archived")) for hit in await kept.store.search("", k=stored, filter={}))
    written = sum(len(task["lessons"]) for task in tasks)
    return [
        Figure("HumanEval lessons, hit@5 by task", hits / len(tasks), "", 0.98, more_is_better=True),
        Figure(f"kept of {written} lessons, repeats counted", stored, "lessons"),
        Figure("of these, taken for corrected by another", archived, "lessons", 0),
    ]


async def _speed() -> list[Figure]:
    figures = []
    for size, (wanted, peers) in SIZES.items():
        store = InMemoryVectorStore(RandomEmbedder())
        for first in range(0, size, 1_000):
            await store.add([Chunk(f"lesson {number}", {"user_id": "ada"}) for number in range(first, first + 1_000)])
        p50, p95, _ = await _timed(store, ["ada"])
        figures.append(
            Figure(f"recall of 5 among {size:,} of a user in memory, p50", p50, "ms", wanted, baseline=peers)
        )
        figures.append(Figure(f"the same, p95 of {size:,}", p95, "ms"))
    return figures


def in_postgres() -> list[Figure]:
    """100,000 lessons of 1,000 users, with all indexes."""
    with running_postgres() as dsn:
        return asyncio.run(_in_postgres(dsn))


async def _in_postgres(dsn: str) -> list[Figure]:
    async with PostgresVectorStore(RandomEmbedder(), dsn=dsn) as store:
        await store.count()
        await asyncio.to_thread(_fill, dsn)
        p50, p95, hits = await _timed(store, [f"user-{number}" for number in range(ASKED)])
    peers = "21 ms and 0.5 hits, 11 ms and 5"
    return [
        Figure(f"recall of 5 of a user among {MANY:,} in PostgreSQL, p50", p50, "ms", 4.0, baseline=peers),
        Figure("the same, p95", p95, "ms"),
        Figure("hits of 5, on average", hits, "hits", 5.0, more_is_better=True),
    ]


def _fill(dsn: str) -> None:
    """In the database itself, and the index of vectors afterwards: one by one takes three milliseconds a row."""
    index = "reflexio_vectors_embedding_hnsw"
    with psycopg.connect(dsn, autocommit=True) as connection:
        ((made,),) = connection.execute("SELECT indexdef FROM pg_indexes WHERE indexname = %s", [index]).fetchall()
        connection.execute(f"DROP INDEX {index}")
        connection.execute(
            "INSERT INTO reflexio_vectors SELECT 'vec_' || row, 'lesson ' || row, "
            "jsonb_build_object('user_id', 'user-' || row %% %s, 'lesson', 'lesson ' || row), "
            # Named in the inner query, so that it is asked anew for each row.
            "l2_normalize(ARRAY(SELECT random_normal() FROM generate_series(1, %s) WHERE row > 0)::real[]::vector) "
            "FROM generate_series(1, %s) AS row",
            [USERS, WIDTH, MANY],
        )
        connection.execute("SET maintenance_work_mem = '700MB'")
        connection.execute(made)
        connection.execute("ANALYZE reflexio_vectors")


async def _timed(store: VectorStore, users: Sequence[str]) -> tuple[float, float, float]:
    """Median, 95th percentile, and how many lessons came on average."""
    kept = VectorStoreLessons(store)
    await kept.recall("a task", user_id=users[0])
    seconds, found = [], 0
    for number in range(ASKED):
        began = time.perf_counter()
        found += len(await kept.recall("a task", user_id=users[number % len(users)]))
        seconds.append(time.perf_counter() - began)
    return *milliseconds(seconds), found / ASKED
