"""API keys: only a digest of the token is kept."""

from sqlalchemy import Connection, insert, select, update

from reflexio.ports.storage import Key
from reflexio.storage.schema import keys

COLUMNS = (keys.c.id, keys.c.org_id, keys.c.label, keys.c.prefix, keys.c.created_at)
VALID = keys.c.revoked_at == 0


class SqlKeys:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, org_id: str, label: str, prefix: str, digest: str, now: int) -> Key:
        row = {"org_id": org_id, "label": label, "prefix": prefix, "created_at": now}
        done = self._connection.execute(insert(keys).returning(keys.c.id), {**row, "digest": digest})
        return Key(id=done.scalar_one(), org_id=org_id, label=label, prefix=prefix, created_at=now)

    def find(self, digest: str) -> Key | None:
        row = self._connection.execute(select(*COLUMNS).where(keys.c.digest == digest, VALID)).one_or_none()
        return Key(*row) if row else None

    def is_revoked(self, digest: str) -> bool:
        query = select(keys.c.id).where(keys.c.digest == digest, keys.c.revoked_at != 0)
        return self._connection.execute(query).first() is not None

    def list(self) -> list[Key]:
        query = select(*COLUMNS).where(VALID).order_by(keys.c.id)
        return [Key(*row) for row in self._connection.execute(query)]

    def revoke(self, key_id: int, now: int) -> bool:
        done = self._connection.execute(update(keys).where(keys.c.id == key_id, VALID).values(revoked_at=now))
        return done.rowcount > 0
