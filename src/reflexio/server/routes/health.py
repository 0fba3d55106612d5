"""Health, version and the API documentation page. These routes need no key."""

from pathlib import Path
from typing import Any

from fastapi import Request
from starlette.responses import FileResponse, PlainTextResponse

import reflexio
from reflexio.server.direct import Router
from reflexio.server.metrics import CONTENT_TYPE, write_metrics
from reflexio.server.routes import get_reflexio
from reflexio.server.scopes import OPEN

router = Router(tag="health")

DOCUMENTATION_PAGE = Path(__file__).with_name("documentation.html")
CONTENT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"


@router.get("/docs", include_in_schema=False, openapi_extra=OPEN)
async def documentation() -> FileResponse:
    """Every route with its fields, and a form to try it. The page loads nothing from elsewhere."""
    headers = {"Content-Security-Policy": CONTENT_POLICY}
    return FileResponse(DOCUMENTATION_PAGE, media_type="text/html", headers=headers)


@router.get("/", openapi_extra=OPEN)
async def root() -> dict[str, str]:
    """Name, version, and the path of the documentation."""
    return {"name": "Reflexio", "version": reflexio.__version__, "documentation": "/docs"}


@router.get("/health/live", openapi_extra=OPEN)
@router.get("/healthz", operation_id="healthz", openapi_extra=OPEN)
async def live() -> dict[str, str]:
    """`{"status": "ok"}` while the process runs. Does not use the database."""
    return {"status": "ok"}


@router.get("/health", openapi_extra=OPEN)
async def health(request: Request) -> dict[str, Any]:
    """`status` is "ok" while the process runs. Does not use the database.

    `embedder` says what computes the vectors. `backlog` counts what waits for the word index or for a vector, of all
    organisations together, with the ages of the oldest rows in seconds, and `embedding_seconds_left`: how long the last
    vector will take at the pace of the last half minute, null while that is unknown. It is at most a second old.
    """
    reflexio = get_reflexio(request)
    embedder = {"name": reflexio.embedder.name, "runtime": reflexio.embedder_runtime}
    return {"status": "ok", "embedder": embedder, "backlog": reflexio.index_status.backlog()}


@router.get("/metrics", response_class=PlainTextResponse, openapi_extra=OPEN)
async def metrics(request: Request) -> PlainTextResponse:
    """Gauges, counters and latencies in Prometheus' text format. They name no organisation and no user."""
    text = write_metrics(get_reflexio(request), request.app.state.requests)
    return PlainTextResponse(text, media_type=CONTENT_TYPE)


@router.get("/health/ready", openapi_extra=OPEN)
async def ready(request: Request) -> dict[str, str]:
    """`{"status": "ready"}` when the database answers, else a 503."""
    await get_reflexio(request).database.ping()
    return {"status": "ready"}


@router.get("/meta/version", openapi_extra=OPEN)
async def meta_version() -> dict[str, str]:
    """`{"version": "…"}`, the installed version."""
    return {"version": reflexio.__version__}
