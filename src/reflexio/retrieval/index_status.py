"""How far the word index and the vectors are behind what was stored, for health checks and metrics.

The server refreshes it when something was written, so that reading it costs no query. It counts rows of all
organisations together.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict
from math import ceil

from reflexio.ports.clock import Clock
from reflexio.ports.storage import Database, IndexBacklog, IndexCounts

REFRESH_SECONDS = 1.0
RATE_SECONDS = 30.0
"""The pace of embedding is measured over the last so many seconds."""


class IndexStatus:
    """The backlog as it was at most a second ago, and what was done so far."""

    def __init__(self, clock: Clock, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.counts = IndexCounts()
        self._clock = clock
        self._monotonic = monotonic
        self._backlog = IndexBacklog()
        self._refreshed_at: float | None = None
        self._embedded: deque[tuple[float, int]] = deque()

    def _seconds_left(self) -> int | None:
        """How long the rows that wait for a vector will wait at the pace of late; None while that is not known."""
        waiting = self._backlog.learnings_without_vector + self._backlog.turns_without_vector
        if not waiting:
            return 0
        now = self._monotonic()
        recent = [(at, count) for at, count in self._embedded if at >= now - RATE_SECONDS]
        # The first batch was made in the time before it.
        rows = sum(count for _, count in recent[1:])
        return ceil(waiting * (now - recent[0][0]) / rows) if rows else None

    async def refresh_when_due(self, database: Database) -> None:
        now = self._monotonic()
        if self._refreshed_at is None or now - self._refreshed_at >= REFRESH_SECONDS:
            self._backlog, counts = await database.read_vectors(lambda vectors: (vectors.backlog(), vectors.counts()))
            if self._refreshed_at is not None:
                self._record_embedded(counts.rows_embedded - self.counts.rows_embedded)
            self._refreshed_at, self.counts = now, counts

    def _record_embedded(self, count: int) -> None:
        now = self._monotonic()
        if count:
            self._embedded.append((now, count))
        while self._embedded and self._embedded[0][0] < now - RATE_SECONDS:
            self._embedded.popleft()

    def backlog(self) -> dict[str, int | None]:
        """Counts, the ages in seconds of the oldest rows, and how long the last vector will take at the pace of late.

        An age grows while nothing is done.
        """
        counts = asdict(self._backlog)
        not_indexed, without_vector = counts.pop("not_indexed_since"), counts.pop("without_vector_since")
        return {
            **counts,
            "oldest_not_indexed_seconds": self._age(not_indexed),
            "oldest_without_vector_seconds": self._age(without_vector),
            "embedding_seconds_left": self._seconds_left(),
        }

    def _age(self, since: int) -> int:
        return max(0, self._clock.now() - since) if since else 0
