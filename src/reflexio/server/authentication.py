"""For whom a request speaks. A bearer token says it; without any key only this machine is served, with all scopes."""

import hmac
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from reflexio.dashboard.sessions import OPERATOR
from reflexio.errors import KeyNeeded, NotAuthorised
from reflexio.models.access import Caller
from reflexio.models.loopback import is_loopback
from reflexio.organisations.keys import DEFAULT_ORG, PREFIX, any_exists, digest
from reflexio.ports.storage import Database, Keys

CACHE_SECONDS = 2.0
"""How long a lookup of keys is cached: a new or revoked key takes effect after at most that long."""
MAX_CACHED_TOKENS = 10_000
KEY_HEADER = "X-Reflexio-Key"


def is_local(peer: str, headers: Headers) -> bool:
    """Whether the caller is on this machine, and is no web page from elsewhere. A proxy has no `peer`."""
    if not is_loopback(peer):
        return False
    origin = headers.get("origin")
    return is_loopback(_host(f"//{headers.get('host', '')}")) and (origin is None or is_loopback(_host(origin)))


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def bearer(headers: Headers) -> str:
    """The token in `Authorization`; empty without one."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def presented_key(headers: Headers) -> str:
    """The key that a caller shows: in a header of ours, because `Authorization` may hold the key of a model."""
    return headers.get(KEY_HEADER, "").strip() or bearer(headers)


@dataclass(frozen=True, slots=True)
class TokenLookup:
    """What the database knows about a token. An unknown token has no caller."""

    caller: Caller | None = None
    is_revoked: bool = False


def _look_up(keys: Keys, token_digest: str) -> TokenLookup:
    key = keys.find(token_digest)
    if key is None:
        return TokenLookup(is_revoked=keys.is_revoked(token_digest))
    return TokenLookup(Caller(key.org_id, key.scopes, key.owner))


class Authenticator:
    """Finds for whom each request speaks. `api_key` is the operator's own key, for the default organisation."""

    def __init__(
        self,
        database: Database,
        api_key: str,
        *,
        require_key: bool = False,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._require_key = require_key
        self._operator_digest = digest(api_key) if api_key else ""
        self._monotonic = monotonic
        self._tokens: dict[str, tuple[float, TokenLookup]] = {}
        self._any_key: tuple[float, bool] = (-CACHE_SECONDS, False)

    async def authenticate(self, peer: str, headers: Headers) -> Caller:
        """The organisation and the scopes of the request. Raises NotAuthorised when there are none."""
        if token := presented_key(headers):
            lookup = await self._token_lookup(digest(token))
            if lookup.caller:
                return lookup.caller
            # Clients of a server without keys may send any word as a key, but not a revoked key.
            if lookup.is_revoked or await self._keys_exist():
                raise NotAuthorised("This key is not valid here.")
        elif await self._keys_exist():
            raise NotAuthorised
        if not is_local(peer, headers):
            raise KeyNeeded
        return Caller(DEFAULT_ORG)

    async def is_reflexio_key(self, token: str) -> bool:
        """Whether this is a key of ours, valid or not: no other server may see it."""
        if token.startswith(PREFIX):
            return True
        lookup = await self._token_lookup(digest(token))
        return lookup.caller is not None or lookup.is_revoked

    async def key_of(self, token: str) -> tuple[int, str] | None:
        """The id and the digest of a valid token; the operator's own key has the id `OPERATOR`."""
        token_digest = digest(token)
        if self._operator_digest and hmac.compare_digest(token_digest, self._operator_digest):
            return OPERATOR, token_digest
        key = await self._database.read_keys(lambda keys: keys.find(token_digest))
        return (key.id, token_digest) if key else None

    async def digest_of(self, key_id: int) -> str | None:
        """The digest of a valid key, read anew each time: a revoked key ends its sessions at once."""
        if key_id == OPERATOR:
            return self._operator_digest or None
        return await self._database.read_keys(lambda keys: keys.digest_of(key_id))

    async def caller_of(self, token_digest: str) -> Caller | None:
        """For whom the key with this digest speaks."""
        return (await self._token_lookup(token_digest)).caller

    async def _token_lookup(self, token_digest: str) -> TokenLookup:
        if self._operator_digest and hmac.compare_digest(token_digest, self._operator_digest):
            return TokenLookup(Caller(DEFAULT_ORG))
        now = self._monotonic()
        cached_at, lookup = self._tokens.get(token_digest, (-CACHE_SECONDS, TokenLookup()))
        if now - cached_at >= CACHE_SECONDS:
            lookup = await self._database.read_keys(lambda keys: _look_up(keys, token_digest))
            if len(self._tokens) >= MAX_CACHED_TOKENS:
                self._tokens.clear()
            self._tokens[token_digest] = (now, lookup)
        return lookup

    async def _keys_exist(self) -> bool:
        if self._require_key or self._operator_digest:
            return True
        cached_at, exist = self._any_key
        now = self._monotonic()
        if now - cached_at >= CACHE_SECONDS:
            exist = await any_exists(self._database)
            self._any_key = (now, exist)
        return exist
