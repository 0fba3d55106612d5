"""Embeds rows that have no vector yet, in the background and a few at a time.

The queue is in the database, so a crash forgets nothing. Callers go first: while calls come in, the background takes
small batches, so that it never stops either.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from reflexio.errors import ProviderError, ProviderRefused, ProviderUnavailable, ReflexioError
from reflexio.ports.embedding import Embedder
from reflexio.ports.storage import Database, Unembedded
from reflexio.retrieval.index_status import IndexStatus

log = logging.getLogger("reflexio.embed")

BATCH, BUSY_BATCH, BUSY_TURNS = 32, 16, 8
TURNS_AT_ONCE, BUSY_INDEXED = 500, 100
BUSY_PAUSE = 0.02
"""Seconds between two batches of turns while there are callers: they wait for one batch at most, some 8 ms."""
IDLE = 0.2
"""Seconds until the queue is read again after it was empty and something was written."""
UNCHANGED = 2.0
"""The same while nothing was written here: another server on the same folder may have written."""
LONGEST_PAUSE = 60.0


async def index_turns(database: Database, most: int) -> int:
    """Adds published turns to the word index, many at a time: publishing only stores. Returns how many."""
    turns = await database.read_vectors(lambda vectors: vectors.turns_to_index(most))
    if turns:
        await database.write_vectors(lambda vectors: vectors.index_turns(turns))
    return len(turns)


async def embed_some(database: Database, embedder: Embedder, most: int = BATCH) -> int:
    """Embeds one batch; returns how many rows it took from the queue."""
    rows = await database.read_vectors(lambda vectors: vectors.waiting(most))
    if most < BATCH and rows and rows[0].kind == "interaction":
        # Learnings come first in the queue and soon; turns can wait for a quiet moment.
        rows = rows[:BUSY_TURNS]
    empty = [row for row in rows if not row.text.strip()]
    rest = [row for row in rows if row.text.strip()]
    if empty:
        await database.write_vectors(lambda vectors: vectors.skip(empty))
    if rest:
        try:
            await _embed(database, embedder, rest)
        except (ProviderRefused, ProviderUnavailable):
            raise
        except ProviderError as error:
            await _embed_alone(database, embedder, rest, error)
    return len(rows)


async def _embed(database: Database, embedder: Embedder, rows: Sequence[Unembedded]) -> None:
    vectors = await embedder.embed([row.text for row in rows])
    blobs = [vector.astype("float16").tobytes() for vector in vectors]
    await database.write_vectors(lambda queue: queue.put(rows, embedder.name, blobs))


async def _embed_alone(
    database: Database, embedder: Embedder, rows: Sequence[Unembedded], error: ProviderError
) -> None:
    """Embeds rows one by one after they failed together: a text that no provider accepts must not block the others.
    Such a text goes to the end of the queue."""
    failed = list(rows) if len(rows) == 1 else []
    for row in rows if len(rows) > 1 else ():
        try:
            await _embed(database, embedder, [row])
        except (ProviderRefused, ProviderUnavailable):
            raise
        except ProviderError as alone:
            log.warning("the text of %s %s is not embedded now: %s", row.kind, row.row_id, alone)
            failed.append(row)
    await database.write_vectors(lambda queue: queue.postpone(failed))
    if len(failed) == len(rows):
        raise error


async def _sleep_until_written(database: Database, status: IndexStatus, seen: tuple[int, int]) -> None:
    """Sleeps while nothing is written. To look at two numbers costs nothing; to look into the database does."""
    for _ in range(round(UNCHANGED / IDLE)):
        await asyncio.sleep(IDLE)
        if (database.changes.version, status.turns_indexed) != seen:
            return


async def keep_indexing(database: Database, status: IndexStatus, traffic: Callable[[], bool]) -> None:
    """Runs until cancelled: adds published turns to the word index, whatever the pace of publishing.

    It does not wait for callers, because without it turns would be found ever later; small batches keep each of them
    from waiting for long. `traffic` tells whether there are callers.
    """
    while True:
        try:
            is_busy, writes = traffic(), database.changes.version
            taken = await index_turns(database, BUSY_INDEXED if is_busy else TURNS_AT_ONCE)
            status.turns_indexed += taken
            await status.refresh_when_due(database)
        except ReflexioError as error:
            log.error("turns are not indexed: %s", error)
            await asyncio.sleep(LONGEST_PAUSE)
            continue
        if taken:
            await asyncio.sleep(IDLE if taken < BUSY_INDEXED else BUSY_PAUSE if is_busy else 0.0)
        else:
            await _sleep_until_written(database, status, (writes, status.turns_indexed))


async def keep_embedding(
    database: Database, embedder: Embedder, status: IndexStatus, wait_for_quiet: Callable[[], Awaitable[bool]]
) -> None:
    """Runs until cancelled. After a provider error it retries with ever longer pauses."""
    await database.write_vectors(lambda vectors: vectors.queue_all_but(embedder.name))
    pause = IDLE
    while True:
        try:
            quiet = await wait_for_quiet()
            seen = database.changes.version, status.turns_indexed
            taken = await embed_some(database, embedder, BATCH if quiet else BUSY_BATCH)
            status.rows_embedded += taken
            pause = IDLE
            if not taken:
                await _sleep_until_written(database, status, seen)
                continue
        except ProviderError as error:
            waiting = await database.read_vectors(lambda vectors: vectors.backlog())
            rows = waiting.learnings_without_vector + waiting.turns_without_vector
            log.warning("embedding waits %.0f s with %d row(s) to embed: %s", pause, rows, error)
            status.failures += 1
            taken, pause = 0, min(LONGEST_PAUSE, pause * 2)
        except ReflexioError as error:
            log.error("embedding waits: %s", error)
            taken, pause = 0, LONGEST_PAUSE
        if not taken:
            await asyncio.sleep(pause)
