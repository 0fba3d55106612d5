"""Health and metrics of a worker, on a port of its own. Nothing else is served there."""

import socket
from asyncio import create_task
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

from reflexio.app import Reflexio
from reflexio.errors import InvalidRequest, StorageUnavailable
from reflexio.server.connections import ConnectionLimits, Connections
from reflexio.server.metrics import CONTENT_TYPE, write_metrics

CONNECTIONS = 32


class _StatusServer(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The worker handles signals itself."""
        yield


def _status_app(parts: Reflexio) -> Starlette:
    async def live(_: Request) -> JSONResponse:
        return JSONResponse({"status": "ok", "leads": parts.work_status.is_leader})

    async def ready(_: Request) -> JSONResponse:
        try:
            await parts.database.ping()
        except StorageUnavailable as error:
            return JSONResponse({"status": "waiting", "detail": str(error)}, 503)
        return JSONResponse({"status": "ready"})

    async def metrics(_: Request) -> PlainTextResponse:
        return PlainTextResponse(write_metrics(parts), media_type=CONTENT_TYPE)

    paths = {"/health": live, "/health/live": live, "/health/ready": ready, "/metrics": metrics}
    return Starlette(routes=[Route(path, endpoint) for path, endpoint in paths.items()])


@asynccontextmanager
async def serving_status(parts: Reflexio) -> AsyncIterator[None]:
    """Serves on REFLEXIO_WORKER_PORT inside the `with` block, if that is set."""
    settings = parts.settings
    if not settings.worker_port:
        yield
        return
    parts.watch()
    config = uvicorn.Config(
        _status_app(parts),
        http=Connections(ConnectionLimits(connections=CONNECTIONS)).protocol,
        log_config=None,
        log_level="warning",
        access_log=False,
        lifespan="off",
        proxy_headers=False,
        server_header=False,
        ws="none",
    )
    with _listen(settings.host, settings.worker_port) as listener:
        server = _StatusServer(config)
        serving = create_task(server.serve([listener]))
        try:
            yield
        finally:
            server.should_exit = server.force_exit = True
            await serving


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise InvalidRequest(f"Cannot listen on {host}:{port}; choose another REFLEXIO_WORKER_PORT.") from error
