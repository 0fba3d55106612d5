"""Embed: rows that wait for their vector get it, in the background and a few at a time.

The queue is in the database, so nothing is forgotten by a crash. Small batches let those who ask go first.
"""

import asyncio
import logging
from collections.abc import Sequence

from reflexio.errors import ProviderError, ProviderRefused, ProviderUnavailable, ReflexioError
from reflexio.ports.embedding import Embedder
from reflexio.ports.storage import Database, Unembedded

log = logging.getLogger("reflexio.embed")

BATCH = 32
IDLE = 0.2
"""Seconds between looks at an empty queue."""
LONGEST_PAUSE = 60.0


async def embed_some(database: Database, embedder: Embedder) -> int:
    """One batch; tells how many rows it took from the queue."""
    rows = await database.read_vectors(lambda vectors: vectors.waiting(BATCH))
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
    made = [vector.astype("float16").tobytes() for vector in vectors]
    await database.write_vectors(lambda queue: queue.put(rows, embedder.name, made))


async def _embed_alone(
    database: Database, embedder: Embedder, rows: Sequence[Unembedded], error: ProviderError
) -> None:
    """One row after the other, when they were refused together: a text that no provider takes must not hold up
    the others. It goes to the end of the queue."""
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


async def keep_embedding(database: Database, embedder: Embedder) -> None:
    """Until cancelled. A provider that fails is asked again after ever longer pauses."""
    await database.write_vectors(lambda vectors: vectors.queue_all_but(embedder.name))
    pause = IDLE
    while True:
        try:
            taken = await embed_some(database, embedder)
            pause = IDLE
        except ProviderError as error:
            log.warning("embedding waits %.0f s: %s", pause, error)
            taken, pause = 0, min(LONGEST_PAUSE, pause * 2)
        except ReflexioError as error:
            log.error("embedding waits: %s", error)
            taken, pause = 0, LONGEST_PAUSE
        if not taken:
            await asyncio.sleep(pause)
