"""Windows that were learned from."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from reflexio.ports.storage import LearnedWindow
from reflexio.storage.schema import windows

FIELDS = list(LearnedWindow.__dataclass_fields__)
COLUMNS = [windows.c[name] for name in FIELDS]


def _read(row: Any) -> LearnedWindow:
    values = dict(row._mapping)
    return LearnedWindow(**{**values, "turn_ids": tuple(values["turn_ids"])})


class SqlWindows:
    def __init__(self, connection: Connection, org_id: str) -> None:
        self._connection = connection
        self._org = org_id

    def get(self, key: str) -> LearnedWindow | None:
        query = select(*COLUMNS).where(windows.c.org_id == self._org, windows.c.key == key)
        row = self._connection.execute(query).one_or_none()
        return _read(row) if row else None

    def add(self, window: LearnedWindow) -> None:
        row = {name: getattr(window, name) for name in FIELDS}
        self._connection.execute(insert(windows), {**row, "org_id": self._org, "turn_ids": list(window.turn_ids)})

    def of_turns(self, user_id: str, turn_ids: Sequence[int]) -> list[LearnedWindow]:
        query = select(*COLUMNS).where(windows.c.org_id == self._org, windows.c.user_id == user_id)
        wanted = set(turn_ids)
        rows = self._connection.execute(query.order_by(windows.c.created_at.desc()))
        return [found for found in map(_read, rows) if wanted & set(found.turn_ids)]

    def forget(self, user_id: str) -> None:
        self._connection.execute(delete(windows).where(windows.c.org_id == self._org, windows.c.user_id == user_id))
