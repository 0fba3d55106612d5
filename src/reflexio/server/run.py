"""Running the application on a port until it is told to stop."""

import asyncio
import sys
from types import FrameType

import uvicorn
from fastapi import FastAPI

from reflexio.server.app import create_app
from reflexio.settings import Settings
from reflexio.wiring import choose_embedder, open_database

NOT_STARTED = 3
SWITCH_SECONDS = 0.0005
"""How long one thread may keep the others waiting. Calls are short; Python's own five milliseconds are a whole call."""

KEEP_ALIVE_SECONDS = 75
"""How long a connection may be idle; longer than a client keeps one, so that no call meets the end of it."""


async def _try_once(settings: Settings) -> None:
    await choose_embedder(settings).aclose()
    await (await open_database(settings)).close()


class _Server(uvicorn.Server):
    """Tells the application at once that it is to stop: a caller who follows something would keep it running."""

    def __init__(self, app: FastAPI, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._app = app

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._app.state.stopping = True
        super().handle_exit(sig, frame)


def serve(settings: Settings) -> None:
    # A database or an embedder that cannot be used is one sentence here; inside the application it would be a page
    # of traceback.
    asyncio.run(_try_once(settings))
    # Proxy headers are not believed: whoever sets one is not a caller on this machine.
    app = create_app(settings)
    sys.setswitchinterval(SWITCH_SECONDS)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        log_level=settings.log_level,
        access_log=settings.log_level == "debug",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=20,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
    )
    server = _Server(app, config)
    try:
        server.run()
    except KeyboardInterrupt:
        return
    if not server.started:
        sys.exit(NOT_STARTED)
