"""Users: how far each one's turns have been learned."""

from sqlalchemy import ColumnElement, Connection, Insert, case, delete, exists, literal_column, select, tuple_, update

from reflexio.ports.storage import Waiting
from reflexio.storage.hot import Hot
from reflexio.storage.schema import interactions, users
from reflexio.storage.upsert import insert_for


def _mark(dialect: str) -> Insert:
    statement = insert_for(dialect)(users)
    new = statement.excluded
    waiting = case((users.c.unlearned_since > literal_column("0"), users.c.unlearned_since), else_=new.unlearned_since)
    return statement.on_conflict_do_update(
        index_elements=["org_id", "user_id"], set_={"unlearned_since": waiting, "published_at": new.published_at}
    )


MARK = Hot(_mark, ["org_id", "user_id", "unlearned_since", "published_at"])


WAITING = [users.c[name] for name in Waiting.__dataclass_fields__]


def backlog(connection: Connection, limit: int, after: Waiting | None) -> list[Waiting]:
    order = users.c.unlearned_since, users.c.org_id, users.c.user_id
    query = select(*WAITING).where(users.c.unlearned_since > 0).order_by(*order).limit(limit)
    if after is not None:
        query = query.where(tuple_(*order) > tuple_(after.unlearned_since, after.org_id, after.user_id))
    return [Waiting(*row) for row in connection.execute(query)]


class SqlUsers:
    def __init__(self, connection: Connection, org_id: str) -> None:
        self._connection = connection
        self._org = org_id

    def mark_unlearned(self, user_id: str, now: int) -> None:
        row = {"org_id": self._org, "user_id": user_id, "unlearned_since": now, "published_at": now}
        MARK.run(self._connection, [row])

    def waiting(self, user_id: str) -> Waiting | None:
        row = self._connection.execute(select(*WAITING).where(*self._one(user_id))).one_or_none()
        return Waiting(*row) if row else None

    def settle(self, user_id: str) -> None:
        left = exists().where(
            interactions.c.org_id == self._org, interactions.c.user_id == user_id, ~interactions.c.is_learned
        )
        rest = case((left, users.c.unlearned_since), else_=0)
        change = update(users).where(*self._one(user_id))
        self._connection.execute(change.values(unlearned_since=rest, attempts=0, retry_at=0, last_error=""))

    def postpone(self, user_id: str, retry_at: int, error: str) -> None:
        change = update(users).where(*self._one(user_id))
        self._connection.execute(change.values(attempts=users.c.attempts + 1, retry_at=retry_at, last_error=error))

    def wake(self) -> int:
        late = update(users).where(users.c.org_id == self._org, users.c.retry_at > 0)
        return self._connection.execute(late.values(retry_at=0)).rowcount

    def remove(self, user_id: str) -> int:
        return self._connection.execute(delete(users).where(*self._one(user_id))).rowcount

    def _one(self, user_id: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
        return users.c.org_id == self._org, users.c.user_id == user_id
