"""How far the word index and the vectors are behind what was stored, for health checks and metrics.

The background work refreshes it, so that reading it costs no query. It counts rows of all organisations together.
"""

import time
from collections.abc import Callable
from dataclasses import asdict

from reflexio.ports.clock import Clock
from reflexio.ports.storage import Database, IndexBacklog

REFRESH_SECONDS = 1.0


class IndexStatus:
    """The backlog as it was at most a second ago, and what was done since the start."""

    def __init__(self, clock: Clock, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.turns_indexed = 0
        self.rows_embedded = 0
        self.failures = 0
        self._clock = clock
        self._monotonic = monotonic
        self._backlog = IndexBacklog()
        self._refreshed_at: float | None = None

    async def refresh_when_due(self, database: Database) -> None:
        now = self._monotonic()
        if self._refreshed_at is None or now - self._refreshed_at >= REFRESH_SECONDS:
            self._refreshed_at = now
            self._backlog = await database.read_vectors(lambda vectors: vectors.backlog())

    def backlog(self) -> dict[str, int]:
        """Counts, and the ages in seconds of the oldest rows. An age grows while nothing is done."""
        counts = asdict(self._backlog)
        not_indexed, without_vector = counts.pop("not_indexed_since"), counts.pop("without_vector_since")
        return {
            **counts,
            "oldest_not_indexed_seconds": self._age(not_indexed),
            "oldest_without_vector_seconds": self._age(without_vector),
        }

    def _age(self, since: int) -> int:
        return max(0, self._clock.now() - since) if since else 0
