"""The stall of an organisation."""

from sqlalchemy import Connection, delete, select

from reflexio.models.stall import Stall
from reflexio.storage.schema import stalls
from reflexio.storage.upsert import put


class SqlStalls:
    def __init__(self, connection: Connection, org_id: str) -> None:
        self._connection = connection
        self._org = org_id

    def get(self) -> Stall | None:
        query = select(stalls.c.reason, stalls.c.message, stalls.c.since, stalls.c.notified)
        row = self._connection.execute(query.where(stalls.c.org_id == self._org)).one_or_none()
        return Stall(*row) if row else None

    def put(self, stall: Stall) -> None:
        row = {"reason": stall.reason, "message": stall.message, "since": stall.since, "notified": stall.notified}
        put(self._connection, stalls, {"org_id": self._org, **row})

    def remove(self) -> bool:
        return self._connection.execute(delete(stalls).where(stalls.c.org_id == self._org)).rowcount > 0
