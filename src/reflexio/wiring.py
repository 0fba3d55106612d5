"""The composition root: Settings in, a running Reflexio out. The only file that names backends."""

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from reflexio.ports.clock import Clock, SystemClock
from reflexio.ports.embedding import Embedder
from reflexio.ports.storage import Database
from reflexio.retrieval.meaning import Meaning
from reflexio.settings import Settings
from reflexio.usecases.embed import Traffic, keep_embedding

log = logging.getLogger("reflexio")

DATABASE = "reflexio.db"
RECEIPTS_KEPT = 7 * 86_400
HOUR = 3600.0


@dataclass
class Reflexio:
    """All parts, connected."""

    settings: Settings
    database: Database
    clock: Clock
    embedder: Embedder
    meaning: Meaning
    traffic: Traffic = field(default_factory=Traffic)
    _tasks: list["asyncio.Task[None]"] = field(default_factory=list)

    def start(self) -> None:
        """Begins the work that goes on beside the calls."""
        embedding = keep_embedding(self.database, self.embedder, self.traffic.lull)
        for work in (self._tidy_hourly(), self.database.warm(self.embedder.name), embedding):
            self._tasks.append(asyncio.create_task(_told(work)))

    async def tidy(self) -> None:
        """Removes what nobody will ask for again."""
        await self.database.forget_receipts(self.clock.now() - RECEIPTS_KEPT)

    async def _tidy_hourly(self) -> None:
        while True:
            await self.tidy()
            await asyncio.sleep(HOUR)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.embedder.aclose()
        await self.database.close()


async def _told(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except Exception:
        log.exception("background work ended")
        raise


async def open_database(settings: Settings) -> Database:
    from reflexio.storage.sqlite import open_sqlite

    return await asyncio.to_thread(open_sqlite, settings.data / DATABASE)


def choose_embedder(settings: Settings) -> Embedder:
    from reflexio.providers.embedding.cached import CachedEmbedder
    from reflexio.providers.embedding.resolve import resolve

    key, url = settings.openai_api_key, settings.openai_base_url
    return CachedEmbedder(resolve(settings.embedder, api_key=key, base_url=url))


async def build(settings: Settings, *, clock: Clock | None = None, embedder: Embedder | None = None) -> Reflexio:
    chosen = embedder or choose_embedder(settings)
    return Reflexio(settings, await open_database(settings), clock or SystemClock(), chosen, Meaning(chosen))
