"""HTTP/1.1 as far as a call needs it: a request as bytes, and a reply read from bytes. No socket is touched here."""

import re
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Self
from urllib.request import getproxies, proxy_bypass

import httpx

from reflexio.errors import InvalidRequest
from reflexio.models.loopback import is_loopback

Need = int | bytes
"""What to read next: so many bytes, or all up to and with an ending."""
TO_THE_END = -1
"""All until the other side closes the connection."""

END_OF_LINE, END_OF_HEAD = b"\r\n", b"\r\n\r\n"
WITHOUT_CONTENT = (204, 304)
UNSENDABLE = re.compile(r"[^\t\x20-\x7e]")


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server answered, and whether another answer may follow on the same connection."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    is_last: bool = True

    @classmethod
    def of(cls, response: httpx.Response) -> Self:
        return cls(response.status_code, response.headers, response.content)

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    @property
    def text(self) -> str:
        return self.content.decode(errors="replace")


@dataclass(frozen=True, slots=True)
class Address:
    """A server that is reached over plain HTTP without anything in between."""

    host: str
    port: int
    authority: str
    prefix: str

    @classmethod
    def of(cls, url: str) -> Self | None:
        """None when encryption, a proxy or a password in the address are for a full HTTP client."""
        try:
            parsed = httpx.URL(url)
        except httpx.InvalidURL:
            return None
        direct = parsed.scheme == "http" and not parsed.userinfo and parsed.host
        if not direct or _goes_through_a_proxy(parsed.host):
            return None
        return cls(parsed.host, parsed.port or 80, parsed.netloc.decode(), parsed.raw_path.decode().rstrip("/"))

    def request(self, method: str, target: str, headers: Mapping[str, str], content: bytes) -> bytes:
        given = {"Host": self.authority, **headers, "Content-Length": str(len(content))}
        lines = "".join([f"{name}: {_sendable(name, value)}\r\n" for name, value in given.items()])
        return f"{method} {self.prefix}{target} HTTP/1.1\r\n{lines}\r\n".encode() + content


def _goes_through_a_proxy(host: str) -> bool:
    """A proxy elsewhere cannot reach this machine by the names that it has for itself."""
    if is_loopback(host):
        return False
    proxies = getproxies()
    return ("http" in proxies or "all" in proxies) and not proxy_bypass(host)


def _sendable(name: str, value: str) -> str:
    if UNSENDABLE.search(value):
        raise InvalidRequest(f"{name} may hold printable ASCII characters only.")
    return value


def receiving() -> Generator[Need, bytes, Reply]:
    """Reads one reply: it says what it needs next and is sent that."""
    status = 100
    while status < 200:  # what the server says in between is no answer yet
        version, status, headers = _head((yield END_OF_HEAD))
    is_last = version != "HTTP/1.1" or "close" in headers.get("connection", "").lower()
    length = headers.get("content-length", "")
    if status in WITHOUT_CONTENT:
        content = b""
    elif "chunked" in headers.get("transfer-encoding", "").lower():
        content = yield from _chunks()
    elif length.isdecimal():
        content = yield int(length)
    else:
        content, is_last = (yield TO_THE_END), True
    return Reply(status, headers, content, is_last)


def _head(raw: bytes) -> tuple[str, int, dict[str, str]]:
    first, *lines = raw.decode("latin-1").rstrip("\r\n").split("\r\n")
    version, _, rest = first.partition(" ")
    if not version.startswith("HTTP/1.") or not rest[:3].isdecimal():
        raise httpx.RemoteProtocolError(f"this is no HTTP answer: {first[:80]!r}")
    pairs = (line.partition(":") for line in lines)
    return version, int(rest[:3]), {name.strip().lower(): value.strip() for name, _, value in pairs}


def _chunks() -> Generator[Need, bytes, bytes]:
    parts = []
    while size := _size((yield END_OF_LINE)):
        parts.append((yield size))
        yield len(END_OF_LINE)
    while (yield END_OF_LINE) != END_OF_LINE:  # headers after the content say nothing that is needed
        pass
    return b"".join(parts)


def _size(line: bytes) -> int:
    try:
        return int(line.partition(b";")[0], 16)
    except ValueError:
        raise httpx.RemoteProtocolError(f"this is no size of a chunk: {line[:80]!r}") from None
