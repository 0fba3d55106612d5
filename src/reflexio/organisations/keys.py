"""API keys: which token speaks for which organisation. A token is shown once; only its digest is stored."""

import hashlib
import secrets
from dataclasses import dataclass

from reflexio.errors import InvalidRequest, NotFound
from reflexio.ports.clock import Clock
from reflexio.ports.storage import Database, StoredApiKey

DEFAULT_ORG = "default"


@dataclass(frozen=True)
class NewKey:
    key: StoredApiKey
    token: str


def digest(token: str) -> str:
    # Tokens are random, not chosen by people: a plain digest cannot be reversed by guessing.
    return hashlib.sha256(token.encode()).hexdigest()


async def create(database: Database, clock: Clock, org_id: str, label: str = "") -> NewKey:
    if not org_id.strip() or len(org_id) > 255:
        raise InvalidRequest("An organisation needs a name of 1 to 255 characters.")
    token = f"rfx_{secrets.token_urlsafe(32)}"
    now = clock.now()
    key = await database.write_keys(lambda keys: keys.add(org_id.strip(), label, token[:8], digest(token), now))
    return NewKey(key, token)


async def any_exists(database: Database) -> bool:
    """Whether there is a valid key of any organisation."""
    return bool(await database.read_keys(lambda keys: keys.list()))


async def revoke(database: Database, clock: Clock, key_id: int) -> None:
    now = clock.now()
    if not await database.write_keys(lambda keys: keys.revoke(key_id, now)):
        raise NotFound("`reflexio keys list` shows the valid ones.", what="key", id=key_id)
