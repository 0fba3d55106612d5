"""The API in a browser: a page of our own that needs nothing but this server."""

from pathlib import Path

from fastapi import APIRouter
from starlette.responses import FileResponse

router = APIRouter()

PAGE = Path(__file__).with_name("documentation.html")
ONLY_HERE = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"


@router.get("/docs", include_in_schema=False)
async def documentation() -> FileResponse:
    """Every route with its fields, and a form to try it."""
    return FileResponse(PAGE, media_type="text/html", headers={"Content-Security-Policy": ONLY_HERE})
