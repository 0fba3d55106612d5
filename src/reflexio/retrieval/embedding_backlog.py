"""Embeds rows that have no vector yet, in the background and a few at a time.

The queue is in the database, so a crash forgets nothing. Callers go first: while calls come in, the background takes
small batches and a share of one processor, so that it never stops either. Organisations take turns.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress

from reflexio.errors import ProviderError, ProviderRefused, ProviderUnavailable, ReflexioError
from reflexio.ports.embedding import Embedder
from reflexio.ports.storage import Database, RowTerms, Unembedded

log = logging.getLogger("reflexio.embed")

BATCH, BUSY_BATCH = 32, 8
BUSY_SHARE = 0.2
"""Of one processor's time, which embedding has while callers or learning keep the server busy."""
LONGEST_YIELD = 1.0
"""Seconds that embedding yields at most between two batches, however slow the embedder is."""
TURNS_AT_ONCE, BUSY_INDEXED = 500, 100
MANY_LETTERS = 50_000
"""In one batch: long rows come a few at a time, and others wait behind them."""
BUSY_PAUSE = 0.02
"""Seconds between two batches of turns while there are callers: they wait for one batch at most, some 8 ms."""
IDLE = 0.2
"""Seconds until the queue is read again after it was empty and something was written."""
UNCHANGED = 2.0
"""The same while nothing was written here: another server on the same folder may have written."""
LONGEST_PAUSE = 60.0


async def index_rows(database: Database, most: int, *, after: str = "") -> Sequence[RowTerms]:
    """Adds published turns and imported learnings to the word index, many at a time: their callers only store them.

    Returns what was added; the next call goes on `after` the organisation of the last one.
    """
    rows = await database.read_vectors(lambda vectors: vectors.to_index(most, after=after))
    if rows:
        await database.write_vectors(lambda vectors: vectors.index(rows))
    return rows


async def embed_some(
    database: Database, embedder: Embedder, most: int = BATCH, *, after: str = ""
) -> Sequence[Unembedded]:
    """Embeds one batch; returns the rows that it took from the queue. The next call goes on `after` their last one."""
    rows = await database.read_vectors(lambda vectors: vectors.waiting(most, after=after))
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
    return rows


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


async def _sleep_until_written(database: Database, seen: int) -> None:
    """Sleeps while nothing is written. To look at a number costs nothing; to look into the tables does."""
    for _ in range(round(UNCHANGED / IDLE)):
        await asyncio.sleep(IDLE)
        if database.changes.version != seen:
            return


async def keep_indexing(database: Database, traffic: Callable[[], bool]) -> None:
    """Runs until cancelled: adds published turns to the word index, whatever the pace of publishing.

    It does not wait for callers, because without it turns would be found ever later; small batches keep each of them
    from waiting for long. `traffic` tells whether there are callers.
    """
    after = ""
    while True:
        try:
            is_busy, writes = traffic(), database.changes.version
            rows = await index_rows(database, BUSY_INDEXED if is_busy else TURNS_AT_ONCE, after=after)
        except ReflexioError as error:
            log.error("turns are not indexed: %s", error)
            await asyncio.sleep(LONGEST_PAUSE)
            continue
        if rows:
            after = rows[-1].org_id
            is_last = len(rows) < BUSY_INDEXED and sum(row.letters for row in rows) < MANY_LETTERS
            await asyncio.sleep(IDLE if is_last else BUSY_PAUSE if is_busy else 0.0)
        else:
            await _sleep_until_written(database, writes)


async def keep_embedding(database: Database, embedder: Embedder, is_quiet: Callable[[], bool]) -> None:
    """Runs until cancelled. After a provider error it retries with ever longer pauses.

    While it is not quiet, small batches and pauses leave the processors to others, but never all the time: without a
    share of its own, embedding would end only when the callers do.
    """
    await database.write_vectors(lambda vectors: vectors.queue_all_but(embedder.name))
    pause, after, clock = IDLE, "", asyncio.get_running_loop()
    while True:
        try:
            quiet, started = is_quiet(), clock.time()
            seen = database.changes.version
            rows = await embed_some(database, embedder, BATCH if quiet else BUSY_BATCH, after=after)
        except ProviderError as error:
            waiting = await database.read_vectors(lambda vectors: vectors.backlog())
            count = waiting.learnings_without_vector + waiting.turns_without_vector
            log.warning("embedding waits %.0f s with %d row(s) to embed: %s", pause, count, error)
            with suppress(ReflexioError):  # only a figure
                await database.write_vectors(lambda vectors: vectors.count_failure())
            await asyncio.sleep(pause)
            pause = min(LONGEST_PAUSE, pause * 2)
        except ReflexioError as error:
            log.error("embedding waits: %s", error)
            await asyncio.sleep(LONGEST_PAUSE)
        else:
            pause = IDLE
            if not rows:
                await _sleep_until_written(database, seen)
            else:
                after = rows[-1].org_id
                if not quiet:
                    await asyncio.sleep(min(LONGEST_YIELD, (clock.time() - started) * (1 / BUSY_SHARE - 1)))
