"""How fast the two halves of a search are: `python -m tests.bench.search_speed 1000000` for a million rows.

Vectors lie in clusters, as those of texts do, and are loaded from half-precision blobs in SQLite. Texts are
the shared playbook bullets with every eighth word exchanged. One org, a thousand users.
"""

import json
import random
import re
import resource
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, create_engine

from reflexio.storage.fulltext.index import FulltextIndex, FulltextRow
from reflexio.storage.fulltext.terms import TermScope
from reflexio.storage.vectors.index import VectorIndex
from tests.bench.retrieval_sets import DATA, lines

DIMENSIONS, USERS, BATCH = 384, 1_000, 20_000
ASKED = 100
FULLTEXT = FulltextIndex("bench")


def measure(rows: int) -> dict[str, float]:
    """Seconds and milliseconds by name, printed as they come."""
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, value in (*_vectors(rows, Path(folder)), *_words(rows, Path(folder))):
            figures[name] = value
            print(f"{rows:>9,} rows  {name:34} {value:9.2f}", flush=True)
    return figures


def _vectors(rows: int, folder: Path) -> Iterator[tuple[str, float]]:
    path = folder / "vectors.db"
    queries = _store_vectors(rows, path)
    begun = perf_counter()
    index = _loaded(path)
    yield "vectors: load (s)", perf_counter() - begun
    yield "process: most memory (MB)", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    yield "vectors: everyone, p50 (ms)", _p50(lambda n: index.nearest(queries[n], 10))
    yield "vectors: one user, p50 (ms)", _p50(lambda n: index.nearest(queries[n], 10, user=f"u{n}"))


def _store_vectors(rows: int, path: Path) -> NDArray[np.float32]:
    chance = np.random.default_rng(1)
    centres = _unit(chance.standard_normal((2_000, DIMENSIONS), np.float32))
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE vector (id INTEGER PRIMARY KEY, user TEXT, vector BLOB)")
        for first in range(0, rows, BATCH):
            made = _near(centres[chance.integers(0, 2_000, min(BATCH, rows - first))], chance).astype(np.float16)
            entries = ((row, f"u{row % USERS}", made[row - first].tobytes()) for row in range(first, first + len(made)))
            db.executemany("INSERT INTO vector VALUES (?, ?, ?)", entries)
    db.close()
    return _near(centres[chance.integers(0, 2_000, ASKED)], chance)


def _loaded(path: Path) -> VectorIndex:
    index = VectorIndex(DIMENSIONS)
    db = sqlite3.connect(path)
    stored = db.execute("SELECT id, user, vector FROM vector ORDER BY id")
    while some := stored.fetchmany(BATCH):
        ids, users, blobs = zip(*some, strict=True)
        index.add(ids, users, np.frombuffer(b"".join(blobs), np.float16).reshape(-1, DIMENSIONS))
    db.close()
    return index


def _words(rows: int, folder: Path) -> Iterator[tuple[str, float]]:
    if not DATA.exists():
        print("words: skipped, the shared data is not here")
        return
    texts, queries = _texts()
    engine = create_engine(f"sqlite:///{folder / 'words.db'}")
    with engine.connect() as tx:
        tx.exec_driver_sql("PRAGMA journal_mode = WAL")
        tx.exec_driver_sql("PRAGMA synchronous = NORMAL")
        tx.exec_driver_sql("PRAGMA mmap_size = 4000000000")
        FULLTEXT.create(tx)
        begun = perf_counter()
        _store_texts(tx, rows, texts)
        yield "words: store (s)", perf_counter() - begun
        everyone = TermScope.of("bench", "row")
        yield "words: everyone, p50 (ms)", _p50(lambda n: FULLTEXT.match(tx, everyone, queries[n], 20))
        yield (
            "words: one user, p50 (ms)",
            _p50(lambda n: FULLTEXT.match(tx, TermScope.of("bench", "row", f"u{n}"), queries[n], 20)),
        )
    engine.dispose()


def _store_texts(tx: Connection, rows: int, texts: Iterator[str]) -> None:
    for first in range(0, rows, BATCH):
        batch = range(first, min(rows, first + BATCH))
        FULLTEXT.put(
            tx, [FulltextRow(row, TermScope.of("bench", "row", f"u{row % USERS}"), next(texts)) for row in batch]
        )
        tx.commit()


def _texts() -> tuple[Iterator[str], list[str]]:
    """Endless variations of the playbook bullets, and pieces of four to ten words to ask for."""
    chance = random.Random(1)
    bullets = [line["text"] for line in lines("load/ace_playbooks.jsonl")]
    vocabulary = sorted(set(re.findall(r"[A-Za-z_]{4,}", json.dumps(bullets))))

    def varied() -> Iterator[str]:
        while True:
            words = chance.choice(bullets).split()
            for _ in range(1 + len(words) // 8):
                words[chance.randrange(len(words))] = chance.choice(vocabulary)
            yield " ".join([*words, f"case{chance.randrange(3_000)}"])

    def piece() -> str:
        words = chance.choice(bullets).split()
        length = chance.randint(4, 10)
        first = chance.randrange(max(1, len(words) - length))
        return " ".join(words[first : first + length])

    return varied(), [piece() for _ in range(ASKED)]


def _near(centres: NDArray[np.float32], chance: np.random.Generator) -> NDArray[np.float32]:
    return _unit(centres + chance.standard_normal(centres.shape, np.float32) / np.sqrt(np.float32(DIMENSIONS)))


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def _p50(ask: Callable[[int], object]) -> float:
    took = []
    for number in range(ASKED):
        begun = perf_counter()
        ask(number)
        took.append(perf_counter() - begun)
    return 1_000 * float(np.median(took))


if __name__ == "__main__":
    for wanted in sys.argv[1:] or ["100000"]:
        measure(int(wanted))
