"""Running the application on a port until it is told to stop."""

import asyncio

import uvicorn

from reflexio.server.app import create_app
from reflexio.settings import Settings
from reflexio.wiring import open_database


async def _open_once(settings: Settings) -> None:
    await (await open_database(settings)).close()


def serve(settings: Settings) -> None:
    # A database that cannot be used is one sentence here; inside the application it would be a page of traceback.
    asyncio.run(_open_once(settings))
    # Proxy headers are not believed: whoever sets one is not a caller on this machine.
    uvicorn.run(
        create_app(settings),
        host=settings.host,
        port=settings.port,
        log_level=settings.log_level,
        access_log=settings.log_level == "debug",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=20,
    )
