"""Running the application on a port until it is told to stop."""

import logging
import socket
import sys
from types import FrameType

import uvicorn
from fastapi import FastAPI

from reflexio.app import Reflexio, build
from reflexio.errors import InvalidRequest
from reflexio.models.loopback import is_loopback
from reflexio.server.app import create_app
from reflexio.server.loading import loading
from reflexio.settings import Settings

log = logging.getLogger("reflexio.server")

NOT_STARTED = 3
SWITCH_SECONDS = 0.0005
"""How long one thread may keep the others waiting. Calls are short; Python's own five milliseconds are a whole call."""

KEEP_ALIVE_SECONDS = 75
"""How long a connection may be idle; longer than a client keeps one, so that no call meets the end of it."""


class _Server(uvicorn.Server):
    def __init__(self, app: FastAPI, config: uvicorn.Config, settings: Settings) -> None:
        super().__init__(config)
        self._app = app
        self._settings = settings

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        # A database or an embedder that cannot be used is one sentence here; inside the application it would be a
        # page of traceback.
        with loading():
            house = self._app.state.reflexio = await build(self._settings)
            await _warn_of_a_closed_door(house)
            try:
                await super().startup(sockets)
            except SystemExit as error:  # the reason is in the log already
                if self.lifespan.should_exit:
                    raise
                at = f"{self._settings.host}:{self._settings.port}"
                raise InvalidRequest(f"Cannot listen on {at}; choose another with --port or --host.") from error

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Tells the application at once that it is to stop: a caller who follows something would keep it running."""
        self._app.state.stopping = True
        super().handle_exit(sig, frame)


async def _warn_of_a_closed_door(house: Reflexio) -> None:
    if is_loopback(house.settings.host) or house.settings.api_key:
        return
    if not await house.database.read_keys(lambda keys: keys.list()):
        log.warning("there is no key, so only this machine is served; `reflexio keys create` makes one for the others")


def serve(settings: Settings) -> None:
    app = create_app(settings)
    sys.setswitchinterval(SWITCH_SECONDS)
    # Proxy headers are not believed: whoever sets one is not a caller on this machine.
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        log_level=settings.log_level,
        access_log=settings.log_level == "debug",
        proxy_headers=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=20,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
    )
    server = _Server(app, config, settings)
    try:
        server.run()
    except KeyboardInterrupt:
        return
    if not server.started:
        sys.exit(NOT_STARTED)
