"""Runs the server in this process until a signal stops it."""

import logging
import socket
import sys
from types import FrameType

import uvicorn
from fastapi import FastAPI

from reflexio.app import Reflexio, build
from reflexio.errors import InvalidRequest
from reflexio.models.loopback import is_loopback
from reflexio.organisations.keys import DEFAULT_ORG
from reflexio.server.app import create_app
from reflexio.server.connections import ConnectionLimits, Connections
from reflexio.server.log import install as install_log
from reflexio.server.worker import WorkerProcess
from reflexio.settings import Settings

log = logging.getLogger("reflexio.server")

EXIT_NOT_STARTED = 3
RESERVED_FILES = 128
"""Open files that the server needs besides its connections."""


class _UvicornServer(uvicorn.Server):
    def __init__(self, app: FastAPI, config: uvicorn.Config, settings: Settings, worker: WorkerProcess | None) -> None:
        super().__init__(config)
        self._app = app
        self._settings = settings
        self._worker = worker

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        # Built here, where an unusable database or embedder is one sentence; inside the application it would be a
        # page of traceback.
        parts = self._app.state.reflexio = await build(self._settings)
        await _warn_without_key(parts)
        await _warn_of_models(parts)
        if self._worker:
            self._worker.start()
        try:
            await super().startup(sockets)
        except SystemExit as error:  # the reason is in the log already
            if self.lifespan.should_exit:
                raise
            address = f"{self._settings.host}:{self._settings.port}"
            raise InvalidRequest(f"Cannot listen on {address}; choose another with --port or --host.") from error

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        if self._worker:
            await self._worker.stop()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Tells the application at once to stop: a caller that follows an operation would keep the server running."""
        self._app.state.stopping = True
        super().handle_exit(sig, frame)


async def _warn_without_key(parts: Reflexio) -> None:
    settings = parts.settings
    is_home = is_loopback(settings.host) and not settings.require_key
    if is_home or settings.api_key:
        return
    if await parts.database.read_keys(lambda keys: keys.list()):
        return
    served = "nobody is" if settings.require_key else "only this machine is"
    log.warning("there is no API key, so %s served; create one with `reflexio keys create`", served)


def _reserve_files(connections: int) -> int:
    """How many connections the process may hold, at most `connections`. Raises its limit on files where it can."""
    if sys.platform == "win32":
        return connections
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + RESERVED_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        return max(1, min(connections, soft - RESERVED_FILES))
    return connections


async def _warn_of_models(parts: Reflexio) -> None:
    """Names each model that cannot be used, before the first window has to wait for it. Calls nobody."""
    organisations = dict.fromkeys([DEFAULT_ORG, *await parts.database.configured()])
    for org_id in organisations:
        for problem in await parts.model_problems(org_id):
            log.warning("learning of %r will wait. %s", org_id, problem)


def serve(settings: Settings, *, with_worker: bool = True) -> None:
    """Serves until Ctrl-C or SIGTERM, with a worker beside it. Exits with code 3 when the server could not start."""
    install_log()
    app = create_app(settings)
    limits = ConnectionLimits(connections=_reserve_files(settings.max_connections))
    # Proxy headers are not trusted: a request that carries one does not count as a caller on this machine.
    config = uvicorn.Config(
        app,
        http=Connections(limits).protocol,
        host=settings.host,
        port=settings.port,
        log_level=settings.log_level,
        access_log=settings.log_level == "debug",
        proxy_headers=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=20,
        timeout_keep_alive=round(limits.idle),
    )
    server = _UvicornServer(app, config, settings, WorkerProcess(settings) if with_worker else None)
    try:
        server.run()
    except KeyboardInterrupt:
        return
    if not server.started:
        sys.exit(EXIT_NOT_STARTED)
