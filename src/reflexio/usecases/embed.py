"""Embed: rows that wait for their vector get it, in the background and a few at a time.

The queue is in the database, so nothing is forgotten by a crash. Whoever calls goes first: while calls come in,
the background takes only a small batch now and then, so that it never stands still either.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence

from reflexio.errors import ProviderError, ProviderRefused, ProviderUnavailable, ReflexioError
from reflexio.ports.embedding import Embedder
from reflexio.ports.storage import Database, Unembedded

log = logging.getLogger("reflexio.embed")

BATCH, BUSY_BATCH, BUSY_TURNS = 32, 16, 8
TURNS_AT_ONCE = 200
IDLE = 0.2
"""Seconds between looks at an empty queue."""
LONGEST_PAUSE = 60.0


class Traffic:
    """Whether somebody is calling just now, and whether many are."""

    QUIET, LONGEST_WAIT, IN_A_CROWD = 0.25, 0.25, 1.0
    MANY, CROWD = 25.0, 10.0
    """So many calls a second, for a while, are a crowd: a bucket that leaks at that pace is half full."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._last = -self.QUIET
        self._level = 0.0

    def seen(self) -> None:
        now = self._monotonic()
        self._level = min(2 * self.CROWD, self._leaked(now) + 1)
        self._last = now

    def _leaked(self, now: float) -> float:
        return max(0.0, self._level - (now - self._last) * self.MANY)

    @property
    def is_crowded(self) -> bool:
        return self._leaked(self._monotonic()) > self.CROWD

    @property
    def is_quiet(self) -> bool:
        return self._monotonic() - self._last >= self.QUIET

    async def lull(self) -> bool:
        """Waits until nobody has called for a moment, but not for long; True when it is quiet now."""
        deadline = self._monotonic() + (self.IN_A_CROWD if self.is_crowded else self.LONGEST_WAIT)
        while not self.is_quiet and self._monotonic() < deadline:  # noqa: ASYNC110  calls only leave a time stamp
            await asyncio.sleep(self.QUIET / 2)
        return self.is_quiet


async def index_turns(database: Database) -> bool:
    """Publishing only stores: its turns are made findable by words here, many in one go. True when more are left."""
    return await database.write_vectors(lambda vectors: vectors.index_turns(TURNS_AT_ONCE)) == TURNS_AT_ONCE


async def embed_some(database: Database, embedder: Embedder, most: int = BATCH) -> int:
    """One batch; tells how many rows it took from the queue."""
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


async def keep_embedding(database: Database, embedder: Embedder, lull: Callable[[], Awaitable[bool]]) -> None:
    """Until cancelled. A provider that fails is asked again after ever longer pauses."""
    await database.write_vectors(lambda vectors: vectors.queue_all_but(embedder.name))
    pause = IDLE
    while True:
        try:
            quiet = await lull()
            if await index_turns(database) and quiet:
                continue
            taken = await embed_some(database, embedder, BATCH if quiet else BUSY_BATCH)
            pause = IDLE
        except ProviderError as error:
            rows = await database.read_vectors(lambda vectors: vectors.backlog())
            log.warning("embedding waits %.0f s with %d row(s) to embed: %s", pause, rows, error)
            taken, pause = 0, min(LONGEST_PAUSE, pause * 2)
        except ReflexioError as error:
            log.error("embedding waits: %s", error)
            taken, pause = 0, LONGEST_PAUSE
        if not taken:
            await asyncio.sleep(pause)
