"""Operations, and what became of each user that they processed."""

from typing import Any

from sqlalchemy import ColumnElement, Select, and_, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from reflexio.errors import Conflict
from reflexio.models.operation import Operation, OperationStatus, UserProgress
from reflexio.storage.queries import OrganisationRows, attributes
from reflexio.storage.schema import operations, outcomes

FIELDS = [name for name in Operation.__dataclass_fields__ if name != "status"]


def _row(operation: Operation) -> dict[str, Any]:
    return {"status": operation.status.value, **attributes(operation, FIELDS)}


def _read_operation(row: Any) -> Operation:
    return Operation(status=OperationStatus(row.status), **attributes(row, FIELDS))


class SqlOperations(OrganisationRows):
    def _where(self, *where: ColumnElement[bool]) -> ColumnElement[bool]:
        return and_(operations.c.org_id == self._org, *where)

    def _select(self, *where: ColumnElement[bool]) -> Select[Any]:
        return select(operations).where(self._where(*where))

    def add(self, operation: Operation) -> None:
        try:
            self._connection.execute(insert(operations), {"org_id": self._org, **_row(operation)})
        except IntegrityError:
            raise Conflict(f"Another {operation.service_name!r} is already in progress.") from None

    def get(self, operation_id: str) -> Operation | None:
        return self._one(self._select(operations.c.id == operation_id), _read_operation)

    def hold(self, operation_id: str) -> Operation | None:
        return self._one(self._select(operations.c.id == operation_id).with_for_update(), _read_operation)

    def latest(self, service_name: str) -> Operation | None:
        query = self._select(operations.c.service_name == service_name)
        return self._one(query.order_by(operations.c.seq.desc()).limit(1), _read_operation)

    def newest(self, limit: int) -> list[Operation]:
        return self._rows(self._select().order_by(operations.c.seq.desc()).limit(limit), _read_operation)

    def running(self, service_name: str | None = None) -> list[Operation]:
        query = self._select(operations.c.status == OperationStatus.IN_PROGRESS.value)
        if service_name is not None:
            query = query.where(operations.c.service_name == service_name)
        return self._rows(query.order_by(operations.c.seq).with_for_update(), _read_operation)

    def put(self, operation: Operation) -> None:
        self._change(update(operations).where(self._where(operations.c.id == operation.id)).values(**_row(operation)))

    def trim(self, service_name: str, keep: int) -> int:
        old = select(operations.c.id).where(self._where(operations.c.service_name == service_name))
        ids = self._scalars(old.order_by(operations.c.seq.desc()).offset(keep))
        self._change(delete(outcomes).where(outcomes.c.org_id == self._org, outcomes.c.operation_id.in_(ids)))
        self._change(delete(operations).where(self._where(operations.c.id.in_(ids))))
        return len(ids)

    def note(self, operation_id: str, outcome: UserProgress) -> UserProgress | None:
        key = {"org_id": self._org, "operation_id": operation_id, "user_id": outcome.user_id}
        here = and_(*(outcomes.c[name] == value for name, value in key.items()))
        before = self._one(select(outcomes.c.user_id, outcomes.c.error).where(here), lambda row: UserProgress(*row))
        if before:
            self._change(update(outcomes).where(here).values(error=outcome.error))
        else:
            self._connection.execute(insert(outcomes), {**key, "error": outcome.error})
        return before

    def outcomes(self, operation_id: str, limit: int) -> list[UserProgress]:
        query = select(outcomes.c.user_id, outcomes.c.error)
        query = query.where(outcomes.c.org_id == self._org, outcomes.c.operation_id == operation_id)
        return self._rows(query.order_by(outcomes.c.seq.desc()).limit(limit), lambda row: UserProgress(*row))[::-1]
