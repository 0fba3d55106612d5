"""Searching over HTTP among many rows: one user's, everybody's, with new and repeated queries."""

import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import delete, insert

from reflexio import AsyncReflexioClient
from reflexio.models.learning import Kind, Learning
from reflexio.server.process import running_server
from reflexio.storage.schema import unembedded, vectors
from reflexio.storage.sqlite import SqliteDatabase, open_sqlite
from reflexio.storage.transaction import SqlTx
from reflexio.storage.vectors.cache import VectorCache
from tests.bench.load import post
from tests.bench.report import Figure, milliseconds
from tests.bench.retrieval_sets import DATA, lines

USERS, BATCH, DIMENSIONS = 1_000, 5_000, 384
MODEL = "local:all-MiniLM-L6-v2"
ORG = "default"


def texts() -> Iterator[str]:
    """Playbook texts without end: the shared bullets, every eighth word exchanged for that of another."""
    chance = random.Random(1)
    bullets = [str(each["text"]) for each in lines("load/ace_playbooks.jsonl")]
    words = [word for bullet in bullets for word in bullet.split()]
    while True:
        said = chance.choice(bullets).split()[:60]
        yield " ".join(chance.choice(words) if chance.random() < 0.125 else word for word in said)


def fill(path: Path, rows: int) -> list[str]:
    """Rows as the server would store them, their vectors drawn from clusters. Gives queries that fit some."""
    database = open_sqlite(path)
    asyncio.run(_fill(database, rows))
    source = texts()
    return [" ".join(next(source).split()[:9]) for _ in range(400)]


async def _fill(database: SqliteDatabase, rows: int) -> None:
    chance = np.random.default_rng(1)
    centres = chance.standard_normal((2_000, DIMENSIONS), np.float32)
    source = texts()
    for first in range(0, rows, BATCH):
        many = [
            Learning(Kind.USER_PLAYBOOK, next(source), user_id=f"user-{row % USERS}", created_at=1_700_000_000 + row)
            for row in range(first, min(rows, first + BATCH))
        ]
        made = centres[chance.integers(0, 2_000, len(many))] + chance.standard_normal(
            (len(many), DIMENSIONS), np.float32
        )
        made /= np.linalg.norm(made, axis=1, keepdims=True)
        await database.write(partial(_store, many=many, made=made))
    await database.close()


def _store(connection: Any, many: list[Learning], made: Any) -> None:
    ids = SqlTx(connection, ORG, VectorCache()).learnings.add(many)
    connection.execute(delete(unembedded))
    rows = [
        {
            "org_id": ORG,
            "kind": "user_playbook",
            "row_id": number,
            "user_id": each.user_id,
            "model": MODEL,
            "vector": vector.astype(np.float16).tobytes(),
        }
        for number, each, vector in zip(ids, many, made, strict=True)
    ]
    connection.execute(insert(vectors), rows)


async def _ready(client: AsyncReflexioClient, query: str) -> float:
    began = time.perf_counter()
    while (await client.search_user_playbooks(query)).degraded:
        pass
    return time.perf_counter() - began


async def _wait_until_ready(url: str, queries: list[str]) -> float:
    async with AsyncReflexioClient(url_endpoint=url) as client:
        seconds = await _ready(client, queries[0])
        for query in queries[:3]:
            await client.search(query, user_id="user-1")
        return seconds


def _measure(url: str, rows: int, queries: list[str]) -> list[Figure]:
    few, at = rows <= 100_000, f"{rows:,} playbooks"

    def of_user(client: int, number: int) -> dict[str, object]:
        return {"query": queries[10 + number], "user_id": f"user-{client * 50 + number}"}

    def of_everybody(_client: int, number: int) -> dict[str, object]:
        return {"query": queries[10 + number]}

    loaded = asyncio.run(_wait_until_ready(url, queries))
    new = post(url, "/api/search", of_user, clients=1, each=100).taken
    again = post(url, "/api/search", of_user, clients=1, each=100).taken
    everybody = post(url, "/api/search_user_playbooks", of_everybody, clients=1, each=100).taken
    rate = post(url, "/api/search", of_user, clients=8, each=50).rate
    source = texts()
    many = [{"user_id": "newcomer", "content": next(source)} for _ in range(1000)]
    added = post(url, "/api/add_user_playbook", lambda *_: {"user_playbooks": many}, clients=1, each=1).taken[0]
    slow = {100_000: "116 ms"}.get(rows, "")
    return [
        Figure(f"{at}: index loaded after", loaded, "s", 15),
        Figure(f"{at}: unified search of a user, new query, p50", milliseconds(new)[0], "ms", 15, baseline=slow),
        Figure(f"{at}: the same, repeated query, p50", milliseconds(again)[0], "ms", 6 if few else 8, baseline=slow),
        Figure(f"{at}: org-wide, repeated query, p50", milliseconds(everybody)[0], "ms", 20 if few else 60),
        Figure(f"{at}: 8 clients, repeated queries", rate, "/s", 150, more_is_better=True, baseline="9 to 17 /s"),
        Figure(f"{at}: adding 1,000 playbooks", added, "s", 1),
    ]


def searching(rows: int) -> list[Figure]:
    if not DATA.exists():
        print("The shared data is not here: searching is not measured.")
        return []
    with tempfile.TemporaryDirectory() as folder:
        queries = fill(Path(folder) / "reflexio.db", rows)
        with running_server(Path(folder)) as url:
            return _measure(url, rows, queries)


if __name__ == "__main__":
    for figure in searching(int(sys.argv[1])):
        print(figure)
