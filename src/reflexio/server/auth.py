"""Who is calling. A bearer token names an organisation; without any key only this machine is served."""

import hmac
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from reflexio.errors import NotAuthorised
from reflexio.models.loopback import is_loopback
from reflexio.organisations.keys import DEFAULT_ORG, digest
from reflexio.ports.storage import Database, Keys

REMEMBERED_FOR = 2.0
"""Seconds that a look at the keys is trusted: a new or revoked key counts after at most that long."""
MOST_REMEMBERED = 10_000
FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip")


def is_local(peer: str, headers: Headers) -> bool:
    """A caller on this machine, and not one whom a proxy or a web page speaks for."""
    if not is_loopback(peer) or any(name in headers for name in FORWARDED):
        return False
    origin = headers.get("origin")
    return is_loopback(_host(f"//{headers.get('host', '')}")) and (origin is None or is_loopback(_host(origin)))


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


@dataclass(frozen=True, slots=True)
class Known:
    """What there is to know about a token."""

    org_id: str = ""
    is_revoked: bool = False


NOBODY, OPERATOR = Known(), Known(DEFAULT_ORG)


def _looked_up(keys: Keys, wanted: str) -> Known:
    key = keys.find(wanted)
    return Known(key.org_id) if key else Known(is_revoked=keys.is_revoked(wanted))


class Gate:
    """Answers one question: for which organisation does this call speak?"""

    def __init__(self, database: Database, api_key: str, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._own = digest(api_key) if api_key else ""
        self._monotonic = monotonic
        self._known: dict[str, tuple[float, Known]] = {}
        self._any_key: tuple[float, bool] = (-REMEMBERED_FOR, False)

    async def organisation(self, peer: str, headers: Headers) -> str:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and token.strip():
            known = await self._of_token(digest(token.strip()))
            if known.org_id:
                return known.org_id
            # Clients for a server without keys may send any word for a key, but not one that was taken away.
            if known.is_revoked or await self._keys_exist():
                raise NotAuthorised("This key is not valid here.")
        elif await self._keys_exist():
            raise NotAuthorised
        if not is_local(peer, headers):
            raise NotAuthorised("Without a key only callers on the same machine are served.")
        return DEFAULT_ORG

    async def _of_token(self, wanted: str) -> Known:
        if self._own and hmac.compare_digest(wanted, self._own):
            return OPERATOR
        now = self._monotonic()
        looked, known = self._known.get(wanted, (-REMEMBERED_FOR, NOBODY))
        if now - looked >= REMEMBERED_FOR:
            known = await self._database.read_keys(lambda keys: _looked_up(keys, wanted))
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            self._known[wanted] = (now, known)
        return known

    async def _keys_exist(self) -> bool:
        if self._own:
            return True
        looked, exist = self._any_key
        now = self._monotonic()
        if now - looked >= REMEMBERED_FOR:
            exist = bool(await self._database.read_keys(lambda keys: keys.list()))
            self._any_key = (now, exist)
        return exist
