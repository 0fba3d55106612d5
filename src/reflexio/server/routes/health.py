"""Health, version and the API documentation page. These routes need no key."""

from pathlib import Path
from typing import Any

from fastapi import Request
from starlette.responses import FileResponse, PlainTextResponse

import reflexio
from reflexio.server.direct import Router
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


METRICS = {
    "turns_not_indexed": ("gauge", "Turns that are not in the word index yet."),
    "learnings_not_indexed": ("gauge", "Learnings of large imports that are not in the word index yet."),
    "oldest_not_indexed_seconds": ("gauge", "Age of the oldest of both."),
    "learnings_without_vector": ("gauge", "Learnings without a vector; search finds them by words."),
    "turns_without_vector": ("gauge", "Indexed turns without a vector; search finds them by words."),
    "oldest_without_vector_seconds": ("gauge", "Age of the oldest row without a vector."),
    "embedding_seconds_left": ("gauge", "Seconds until all have one, at the pace of late; absent while unknown."),
    "turns_indexed_total": ("counter", "Turns added to the word index since the start."),
    "rows_embedded_total": ("counter", "Rows embedded in the background since the start."),
    "embedding_failures_total": ("counter", "Failed attempts to embed rows in the background since the start."),
}


@router.get("/metrics", response_class=PlainTextResponse, openapi_extra=OPEN)
async def metrics(request: Request) -> PlainTextResponse:
    """Gauges and counters of the whole server in Prometheus' text format. They name no organisation and no user."""
    status = get_reflexio(request).index_status
    values = {
        **status.backlog(),
        "turns_indexed_total": status.counts.turns_indexed,
        "rows_embedded_total": status.counts.rows_embedded,
        "embedding_failures_total": status.counts.embedding_failures,
    }
    lines = [
        f"# HELP reflexio_{name} {words}\n# TYPE reflexio_{name} {kind}\nreflexio_{name} {values[name]}\n"
        for name, (kind, words) in METRICS.items()
        if values[name] is not None
    ]
    return PlainTextResponse("".join(lines), media_type="text/plain; version=0.0.4")


@router.get("/health/ready", openapi_extra=OPEN)
async def ready(request: Request) -> dict[str, str]:
    """`{"status": "ready"}` when the database answers, else a 503."""
    await get_reflexio(request).database.ping()
    return {"status": "ready"}


@router.get("/meta/version", openapi_extra=OPEN)
async def meta_version() -> dict[str, str]:
    """`{"version": "…"}`, the installed version."""
    return {"version": reflexio.__version__}
