"""Pools of user playbooks that are clustered together, and how the learner dealt with each cluster."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Insert,
    and_,
    bindparam,
    case,
    delete,
    insert,
    literal_column,
    or_,
    select,
    tuple_,
    update,
)

from reflexio.models.learning import Kind
from reflexio.models.status import Status
from reflexio.ports.storage import Cluster, Member, Pool
from reflexio.storage.hot import Hot
from reflexio.storage.paging import in_parts
from reflexio.storage.schema import clusters, learnings, pools, vectors
from reflexio.storage.upsert import insert_for, put

FIELDS = list(Pool.__dataclass_fields__)
COLUMNS = [pools.c[name] for name in FIELDS]
STATE = list(Cluster.__dataclass_fields__)
STATES = [clusters.c[name] for name in STATE]


def _mark(dialect: str) -> Insert:
    statement = insert_for(dialect)(pools)
    new = statement.excluded
    since = case((pools.c.fresh > literal_column("0"), pools.c.fresh_since), else_=new.fresh_since)
    return statement.on_conflict_do_update(
        index_elements=["org_id", "agent_version", "name"],
        set_={"fresh": pools.c.fresh + new.fresh, "fresh_since": since, "signalled_at": new.signalled_at},
    )


MARK = Hot(_mark, ["org_id", "agent_version", "name", "fresh", "fresh_since", "signalled_at"])


def pools_with_news(connection: Connection, limit: int, after: Pool | None) -> list[Pool]:
    order = pools.c.org_id, pools.c.agent_version, pools.c.name
    query = select(*COLUMNS).where(or_(pools.c.fresh > 0, pools.c.retry_at > 0)).order_by(*order).limit(limit)
    if after is not None:
        query = query.where(tuple_(*order) > tuple_(after.org_id, after.agent_version, after.name))
    return [Pool(*row) for row in connection.execute(query)]


class SqlPools:
    def __init__(self, connection: Connection, org_id: str) -> None:
        self._connection = connection
        self._org = org_id

    def mark(self, agent_version: str, name: str, count: int, now: int) -> None:
        row = {"org_id": self._org, "agent_version": agent_version, "name": name}
        MARK.run(self._connection, [{**row, "fresh": count, "fresh_since": now, "signalled_at": now}])

    def get(self, agent_version: str, name: str) -> Pool:
        here = and_(pools.c.org_id == self._org, pools.c.agent_version == agent_version, pools.c.name == name)
        row = self._connection.execute(select(*COLUMNS).where(here)).one_or_none()
        return Pool(*row) if row else Pool(self._org, agent_version, name)

    def put(self, pool: Pool) -> None:
        put(self._connection, pools, {**{name: getattr(pool, name) for name in FIELDS}, "org_id": self._org})

    def names(self, agent_version: str) -> list[str]:
        query = select(learnings.c.name).where(self._current(agent_version)).distinct().order_by(learnings.c.name)
        return list(self._connection.execute(query).scalars())

    def members(
        self, agent_version: str, name: str, model: str, clusters: Collection[int] | None = None
    ) -> list[Member]:
        column = learnings.c
        made = and_(vectors.c.kind == column.kind, vectors.c.row_id == column.id, vectors.c.model == model)
        rows = [column.id, column.user_id, column.cluster, column.modified_at, column.trigger, column.content]
        query = select(*rows, vectors.c.vector).outerjoin(vectors, made)
        query = query.where(self._current(agent_version), column.name == name).order_by(column.id)
        if clusters is None:
            return [Member._make(row) for row in self._connection.execute(query)]
        parts = (query.where(column.cluster.in_(some)) for some in in_parts(sorted(clusters)))
        return [Member._make(row) for part in parts for row in self._connection.execute(part)]

    def _current(self, agent_version: str) -> ColumnElement[bool]:
        column = learnings.c
        return and_(
            column.org_id == self._org,
            column.kind == Kind.USER_PLAYBOOK.value,
            column.agent_version == agent_version,
            column.status == Status.CURRENT.value,
        )

    def place(self, numbers: Mapping[int, int]) -> None:
        if not numbers:
            return
        mine = and_(learnings.c.org_id == self._org, learnings.c.id == bindparam("row"))
        change = update(learnings).where(mine).values(cluster=bindparam("number"))
        self._connection.execute(change, [{"row": row, "number": number} for row, number in numbers.items()])

    def _laid(self, agent_version: str, name: str) -> ColumnElement[bool]:
        return and_(clusters.c.org_id == self._org, clusters.c.agent_version == agent_version, clusters.c.name == name)

    def clusters(self, agent_version: str, name: str) -> dict[int, Cluster]:
        query = select(*STATES).where(self._laid(agent_version, name)).order_by(clusters.c.number)
        return {row.number: Cluster(*row) for row in self._connection.execute(query)}

    def cluster(self, agent_version: str, name: str, number: int) -> Cluster:
        query = select(*STATES).where(self._laid(agent_version, name), clusters.c.number == number)
        row = self._connection.execute(query).one_or_none()
        return Cluster(*row) if row else Cluster(number)

    def note(self, agent_version: str, name: str, *some: Cluster) -> None:
        for row in self._rows(agent_version, name, some):
            put(self._connection, clusters, row)

    def lay(self, agent_version: str, name: str, every: Sequence[Cluster]) -> None:
        self._connection.execute(delete(clusters).where(self._laid(agent_version, name)))
        if every:
            self._connection.execute(insert(clusters), self._rows(agent_version, name, every))

    def _rows(self, agent_version: str, name: str, some: Sequence[Cluster]) -> list[dict[str, Any]]:
        pool = {"org_id": self._org, "agent_version": agent_version, "name": name}
        return [{**pool, **{field: getattr(each, field) for field in STATE}} for each in some]
