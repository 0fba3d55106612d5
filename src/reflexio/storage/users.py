"""Users: how far each one's turns have been learned."""

from sqlalchemy import ColumnElement, Connection, Insert, case, delete, literal_column, select
from sqlalchemy.dialects import postgresql, sqlite

from reflexio.ports.storage import Progress
from reflexio.storage.hot import Hot
from reflexio.storage.schema import users


def _mark(dialect: str) -> Insert:
    statement = (postgresql.insert if dialect == "postgresql" else sqlite.insert)(users)
    new = statement.excluded
    waiting = case((users.c.unlearned_since > literal_column("0"), users.c.unlearned_since), else_=new.unlearned_since)
    return statement.on_conflict_do_update(
        index_elements=["org_id", "user_id"], set_={"unlearned_since": waiting, "published_at": new.published_at}
    )


MARK = Hot(_mark, ["org_id", "user_id", "unlearned_since", "published_at"])


class SqlUsers:
    def __init__(self, connection: Connection, org_id: str) -> None:
        self._connection = connection
        self._org = org_id

    def mark_unlearned(self, user_id: str, now: int) -> None:
        row = {"org_id": self._org, "user_id": user_id, "unlearned_since": now, "published_at": now}
        MARK.run(self._connection, [row])

    def progress(self, user_id: str) -> Progress | None:
        query = select(users.c.learned_through, users.c.unlearned_since).where(*self._one(user_id))
        row = self._connection.execute(query).one_or_none()
        return Progress(*row) if row else None

    def remove(self, user_id: str) -> int:
        return self._connection.execute(delete(users).where(*self._one(user_id))).rowcount

    def _one(self, user_id: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
        return users.c.org_id == self._org, users.c.user_id == user_id
