"""Where the server is and which key opens it. The client's own two variables are read here."""

import os
import ssl
from dataclasses import dataclass
from functools import cache

import httpx

from reflexio.models.loopback import is_loopback

DEFAULT_URL = "http://127.0.0.1:8081"


@dataclass(frozen=True)
class Endpoint:
    """Base URL and key: what the caller says, else REFLEXIO_URL and REFLEXIO_API_KEY, else a server on this machine."""

    url: str
    api_key: str

    @classmethod
    def find(cls, api_key: str, url_endpoint: str) -> "Endpoint":
        url = url_endpoint or os.environ.get("REFLEXIO_URL", "") or DEFAULT_URL
        key = api_key or os.environ.get("REFLEXIO_API_KEY", "")
        return cls(url.strip().rstrip("/"), key.strip())

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}

    @property
    def is_here(self) -> bool:
        """Whether the server is on this machine, where no proxy reaches it."""
        try:
            return is_loopback(httpx.URL(self.url).host)
        except httpx.InvalidURL:
            return False

    @property
    def trust(self) -> ssl.SSLContext | bool:
        """Whom a connection trusts. The list of authorities takes long to read: once is enough, and only for https."""
        return _authorities() if self.url.lower().startswith("https:") else False


@cache
def _authorities() -> ssl.SSLContext:
    return httpx.create_ssl_context()
