"""Headers in which hosts of MCP and clients of OpenAI say whose conversation it is."""

from urllib.parse import unquote_to_bytes

from starlette.requests import Request

from reflexio.errors import InvalidRequest

USER_HEADER, VERSION_HEADER = "X-Reflexio-User", "X-Reflexio-Agent-Version"
SESSION_HEADER = "X-Reflexio-Session"
LONGEST_NAME = 255


def read_name(request: Request, header: str) -> str:
    """The name in a header, in UTF-8 or percent-encoded; empty without the header."""
    try:
        name = unquote_to_bytes(request.headers.get(header, "").encode("latin-1")).decode().strip()
    except UnicodeDecodeError:
        raise InvalidRequest(f"{header}: send it in UTF-8.") from None
    if len(name) > LONGEST_NAME or "\0" in name:
        raise InvalidRequest(f"{header}: has at most {LONGEST_NAME} characters.")
    return name
