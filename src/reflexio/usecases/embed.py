"""Embed: rows that wait for their vector get it, in the background and a few at a time.

The queue is in the database, so nothing is forgotten by a crash. Small batches let those who ask go first.
"""

import asyncio
import logging
from collections.abc import Sequence

from reflexio.errors import ProviderError, ReflexioError
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
        made = await _halves(embedder, rest)
        await database.write_vectors(lambda vectors: vectors.put(rest, embedder.name, made))
    return len(rows)


async def _halves(embedder: Embedder, rows: Sequence[Unembedded]) -> list[bytes]:
    vectors = await embedder.embed([row.text for row in rows])
    return [vector.astype("float16").tobytes() for vector in vectors]


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
