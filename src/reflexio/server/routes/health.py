"""Is it up, is it ready, which version is it. Open to everybody."""

from importlib.metadata import version

from fastapi import APIRouter, Request

from reflexio.server.parts import house

router = APIRouter(tags=["health"])


@router.get("/")
async def root() -> dict[str, str]:
    """Name, version, and where the documentation is."""
    return {"name": "Reflexio", "version": version("reflexio"), "documentation": "/docs"}


@router.get("/health")
@router.get("/health/live", operation_id="live")
@router.get("/healthz", operation_id="healthz")
async def health() -> dict[str, str]:
    """`{"status": "ok"}` while the process runs. Touches no database."""
    return {"status": "ok"}


@router.get("/health/ready")
async def ready(request: Request) -> dict[str, str]:
    """`{"status": "ready"}` when the database answers, else a 503."""
    await house(request).database.ping()
    return {"status": "ready"}


@router.get("/meta/version")
async def meta_version() -> dict[str, str]:
    """`{"version": "…"}`, the installed version."""
    return {"version": version("reflexio")}
