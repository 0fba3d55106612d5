"""What learning costs, added up by day, operation and model."""

from sqlalchemy import Connection, func, select

from reflexio.models.learned import Spend
from reflexio.models.usage import Spent
from reflexio.storage.schema import spend
from reflexio.storage.upsert import insert_for

COUNTS = ("calls", "input_tokens", "output_tokens")


class SqlSpending:
    def __init__(self, connection: Connection, org_id: str) -> None:
        self._connection = connection
        self._org = org_id

    def add(self, day: str, operation: str, cost: Spend) -> None:
        insert = insert_for(self._connection.dialect.name)
        statement = insert(spend)
        row = {"org_id": self._org, "day": day, "operation": operation, "model": cost.model}
        row |= {name: getattr(cost, name) for name in COUNTS}
        added = {name: spend.c[name] + statement.excluded[name] for name in COUNTS}
        primary = [column.name for column in spend.primary_key]
        self._connection.execute(statement.on_conflict_do_update(index_elements=primary, set_=added), row)

    def since(self, day: str) -> list[Spent]:
        column = spend.c
        query = select(column.day, column.operation, column.model, *(column[name] for name in COUNTS))
        mine = query.where(column.org_id == self._org, column.day >= day)
        rows = self._connection.execute(mine.order_by(column.day.desc(), column.operation, column.model))
        return [Spent(day, operation, Spend(*cost)) for day, operation, *cost in rows]

    def total(self, day: str) -> Spend:
        sums = [func.coalesce(func.sum(spend.c[name]), 0) for name in COUNTS]
        query = select(*sums).where(spend.c.org_id == self._org, spend.c.day == day)
        return Spend("", *map(int, self._connection.execute(query).one()))
