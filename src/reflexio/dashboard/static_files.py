"""The files of the pages: read once, compressed once, and kept by browsers for ever under a path with their hash."""

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

FOLDER = Path(__file__).with_name("static")
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
FOR_EVER, NOT_KEPT = "public, max-age=31536000, immutable", "no-cache"


@dataclass(frozen=True)
class StaticFile:
    content: bytes
    compressed: bytes
    media_type: str
    digest: str


@cache
def static_files() -> dict[str, StaticFile]:
    """All files by name. No other path can be read through them."""
    return {path.name: _read(path) for path in FOLDER.iterdir() if path.suffix in TYPES}


def _read(path: Path) -> StaticFile:
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()[:12]
    return StaticFile(content, gzip.compress(content, 9, mtime=0), TYPES[path.suffix], digest)


def static_path(name: str) -> str:
    return f"/static/{static_files()[name].digest}/{name}"


def answer_static(request: Request) -> Response | None:
    """The file that a path names, or None. Another server's hash gets our file, but the browser does not keep it."""
    _, _, digest, name = [*request.url.path.split("/", 3), "", "", ""][:4]
    file = static_files().get(name)
    if file is None:
        return None
    headers = {
        "Cache-Control": FOR_EVER if digest == file.digest else NOT_KEPT,
        "Vary": "Accept-Encoding",
        "X-Content-Type-Options": "nosniff",
    }
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(file.compressed, media_type=file.media_type, headers={**headers, "Content-Encoding": "gzip"})
    return Response(file.content, media_type=file.media_type, headers=headers)
