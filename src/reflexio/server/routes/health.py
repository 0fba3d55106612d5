"""Health, version and the API documentation page. These routes need no key."""

from pathlib import Path

from fastapi import Request
from starlette.responses import FileResponse

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


@router.get("/health", openapi_extra=OPEN)
@router.get("/health/live", operation_id="live", openapi_extra=OPEN)
@router.get("/healthz", operation_id="healthz", openapi_extra=OPEN)
async def health() -> dict[str, str]:
    """`{"status": "ok"}` while the process runs. Does not use the database."""
    return {"status": "ok"}


@router.get("/health/ready", openapi_extra=OPEN)
async def ready(request: Request) -> dict[str, str]:
    """`{"status": "ready"}` when the database answers, else a 503."""
    await get_reflexio(request).database.ping()
    return {"status": "ready"}


@router.get("/meta/version", openapi_extra=OPEN)
async def meta_version() -> dict[str, str]:
    """`{"version": "…"}`, the installed version."""
    return {"version": reflexio.__version__}
