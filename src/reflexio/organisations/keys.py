"""API keys: the organisation, the scopes and the owner of a token, which is shown once. Only its digest is stored."""

import hashlib
import secrets
from dataclasses import dataclass

from reflexio.errors import InvalidRequest, NotFound
from reflexio.models.access import ALL_SCOPES, KeyScope
from reflexio.ports.clock import Clock
from reflexio.ports.storage import Database, Keys, NewApiKey, StoredApiKey

DEFAULT_ORG = "default"
PREFIX = "rfx_"
"""What every key begins with."""
LONGEST_NAME = 255


@dataclass(frozen=True)
class NewKey:
    key: StoredApiKey
    token: str


def digest(token: str) -> str:
    # Tokens are random, not chosen by people: a plain digest cannot be reversed by guessing.
    return hashlib.sha256(token.encode()).hexdigest()


async def create(
    database: Database,
    clock: Clock,
    org_id: str,
    label: str = "",
    *,
    scopes: frozenset[KeyScope] = ALL_SCOPES,
    owner: str = "",
) -> NewKey:
    """Creates a key. `owner` is the person whom decisions with this key are recorded under."""
    org_id, owner = org_id.strip(), owner.strip()
    if not org_id or len(org_id) > LONGEST_NAME:
        raise InvalidRequest("An organisation needs a name of 1 to 255 characters.")
    if len(owner) > LONGEST_NAME or not owner.isprintable():
        raise InvalidRequest("The owner of a key is a name of at most 255 printable characters.")
    if not scopes:
        raise InvalidRequest(f"A key needs at least one scope: {', '.join(KeyScope)}.")
    token = f"{PREFIX}{secrets.token_urlsafe(32)}"
    new, now = NewApiKey(org_id, token[:8], digest(token), label, scopes, owner), clock.now()
    return NewKey(await database.write_keys(lambda keys: keys.add(new, now)), token)


def parse_scopes(text: str) -> frozenset[KeyScope]:
    """Reads scopes such as "publish,read"."""
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    if unknown := [name for name in names if name not in list(KeyScope)]:
        raise InvalidRequest(f"{unknown[0]!r} is no scope; there are {', '.join(KeyScope)}.")
    return frozenset(map(KeyScope, names))


def describe_scopes(scopes: frozenset[KeyScope]) -> str:
    return "all scopes" if scopes == ALL_SCOPES else ",".join(scope for scope in KeyScope if scope in scopes)


async def any_exists(database: Database) -> bool:
    """Whether there is a valid key of any organisation."""
    return bool(await database.read_keys(lambda keys: keys.list()))


async def of_organisation(database: Database, org_id: str) -> list[StoredApiKey]:
    """The valid keys of one organisation."""
    stored = await database.read_keys(lambda keys: keys.list())
    return [key for key in stored if key.org_id == org_id]


async def revoke(database: Database, clock: Clock, key_id: int, *, org_id: str | None = None) -> None:
    """Revokes a key; with `org_id` only one of that organisation. Raises NotFound."""
    now = clock.now()

    def revoke_key(keys: Keys) -> bool:
        is_known = org_id is None or any(key.id == key_id and key.org_id == org_id for key in keys.list())
        return is_known and keys.revoke(key_id, now)

    if not await database.write_keys(revoke_key):
        raise NotFound("`reflexio keys list` shows the valid ones.", what="key", id=key_id)
