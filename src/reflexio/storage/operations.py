"""Operations and the users they are through with."""

from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from reflexio.errors import Conflict
from reflexio.models.operation import Operation, OperationStatus, Outcome
from reflexio.storage.schema import operations, outcomes

PLAIN = (
    "id",
    "service_name",
    "params",
    "total_users",
    "processed_users",
    "failed_users",
    "current_user_id",
    "stats",
    "error",
    "started_at",
    "heartbeat_at",
    "completed_at",
    "cancel_requested",
)


def _row(operation: Operation) -> dict[str, Any]:
    return {"status": operation.status.value, **{name: getattr(operation, name) for name in PLAIN}}


def _read(row: Any) -> Operation:
    return Operation(status=OperationStatus(row.status), **{name: getattr(row, name) for name in PLAIN})


class SqlOperations:
    def __init__(self, connection: Connection, org_id: str) -> None:
        self._connection = connection
        self._org = org_id

    def _mine(self, *more: ColumnElement[bool]) -> ColumnElement[bool]:
        return and_(operations.c.org_id == self._org, *more)

    def _noted(self, operation_id: str, *more: ColumnElement[bool]) -> ColumnElement[bool]:
        return and_(outcomes.c.org_id == self._org, outcomes.c.operation_id == operation_id, *more)

    def add(self, operation: Operation) -> None:
        try:
            self._connection.execute(insert(operations), {"org_id": self._org, **_row(operation)})
        except IntegrityError:
            raise Conflict(f"Another {operation.service_name!r} is already in progress.") from None

    def get(self, operation_id: str) -> Operation | None:
        row = self._connection.execute(
            select(operations).where(self._mine(operations.c.id == operation_id))
        ).one_or_none()
        return _read(row) if row else None

    def hold(self, operation_id: str) -> Operation | None:
        query = select(operations).where(self._mine(operations.c.id == operation_id)).with_for_update()
        row = self._connection.execute(query).one_or_none()
        return _read(row) if row else None

    def latest(self, service_name: str) -> Operation | None:
        query = select(operations).where(self._mine(operations.c.service_name == service_name))
        row = self._connection.execute(query.order_by(operations.c.seq.desc()).limit(1)).one_or_none()
        return _read(row) if row else None

    def running(self, service_name: str | None = None) -> list[Operation]:
        asked = [operations.c.status == OperationStatus.IN_PROGRESS.value]
        asked += [] if service_name is None else [operations.c.service_name == service_name]
        query = select(operations).where(self._mine(*asked)).order_by(operations.c.seq).with_for_update()
        return [_read(row) for row in self._connection.execute(query)]

    def put(self, operation: Operation) -> None:
        mine = self._mine(operations.c.id == operation.id)
        self._connection.execute(update(operations).where(mine).values(**_row(operation)))

    def trim(self, service_name: str, keep: int) -> int:
        old = select(operations.c.id).where(self._mine(operations.c.service_name == service_name))
        ids = list(self._connection.execute(old.order_by(operations.c.seq.desc()).offset(keep)).scalars())
        gone = outcomes.c.operation_id.in_(ids)
        self._connection.execute(delete(outcomes).where(outcomes.c.org_id == self._org, gone))
        self._connection.execute(delete(operations).where(self._mine(operations.c.id.in_(ids))))
        return len(ids)

    def note(self, operation_id: str, outcome: Outcome) -> Outcome | None:
        here = self._noted(operation_id, outcomes.c.user_id == outcome.user_id)
        row = self._connection.execute(select(outcomes.c.user_id, outcomes.c.error).where(here)).one_or_none()
        if row:
            self._connection.execute(update(outcomes).where(here).values(error=outcome.error))
            return Outcome(*row)
        made = {"org_id": self._org, "operation_id": operation_id}
        self._connection.execute(insert(outcomes), {**made, "user_id": outcome.user_id, "error": outcome.error})
        return None

    def outcomes(self, operation_id: str, limit: int) -> list[Outcome]:
        query = select(outcomes.c.user_id, outcomes.c.error).where(self._noted(operation_id))
        last = self._connection.execute(query.order_by(outcomes.c.seq.desc()).limit(limit))
        return [Outcome(*row) for row in last][::-1]

    def forget_user(self, user_id: str) -> None:
        theirs = outcomes.c.user_id == user_id
        self._connection.execute(delete(outcomes).where(outcomes.c.org_id == self._org, theirs))
        now_at = self._mine(operations.c.current_user_id == user_id)
        self._connection.execute(update(operations).where(now_at).values(current_user_id=""))
