"""The composition root: Settings in, a running Reflexio out. The only file that names backends."""

import asyncio
from dataclasses import dataclass

from reflexio.ports.clock import Clock, SystemClock
from reflexio.ports.storage import Database
from reflexio.settings import Settings

DATABASE = "reflexio.db"
RECEIPTS_KEPT = 7 * 86_400


@dataclass(frozen=True)
class Reflexio:
    """All parts, connected."""

    settings: Settings
    database: Database
    clock: Clock

    async def tidy(self) -> None:
        """Removes what nobody will ask for again."""
        await self.database.forget_receipts(self.clock.now() - RECEIPTS_KEPT)

    async def close(self) -> None:
        await self.database.close()


async def open_database(settings: Settings) -> Database:
    from reflexio.storage.sqlite import open_sqlite

    return await asyncio.to_thread(open_sqlite, settings.data / DATABASE)


async def build(settings: Settings, *, clock: Clock | None = None) -> Reflexio:
    return Reflexio(settings, await open_database(settings), clock or SystemClock())
