"""Pools of user playbooks that are clustered together, and what the learner made of each cluster."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Insert,
    Table,
    and_,
    bindparam,
    case,
    delete,
    func,
    insert,
    literal_column,
    or_,
    select,
    tuple_,
    update,
)

from reflexio.models.learning import Kind, Status
from reflexio.ports.storage import Cluster, Member, Pool
from reflexio.storage.compiled import CompiledStatement
from reflexio.storage.queries import OrganisationRows, attributes, in_batches, insert_for, upsert
from reflexio.storage.schema import clusters, learnings, pools, requests, vectors

POOL_COLUMNS = [pools.c[name] for name in Pool.__dataclass_fields__]
CLUSTER_COLUMNS = [clusters.c[name] for name in Cluster.__dataclass_fields__]


def _mark_pool(dialect: str) -> Insert:
    statement = insert_for(dialect)(pools)
    new = statement.excluded
    since = case((pools.c.fresh > literal_column("0"), pools.c.fresh_since), else_=new.fresh_since)
    return statement.on_conflict_do_update(
        index_elements=["org_id", "agent_version", "name"],
        set_={"fresh": pools.c.fresh + new.fresh, "fresh_since": since, "signalled_at": new.signalled_at},
    )


MARK_POOL = CompiledStatement(_mark_pool, ["org_id", "agent_version", "name", "fresh", "fresh_since", "signalled_at"])


def changed_pools(connection: Connection, limit: int, after: Pool | None) -> list[Pool]:
    order = pools.c.org_id, pools.c.agent_version, pools.c.name
    query = select(*POOL_COLUMNS).where(or_(pools.c.fresh > 0, pools.c.retry_at > 0)).order_by(*order).limit(limit)
    if after is not None:
        query = query.where(tuple_(*order) > tuple_(after.org_id, after.agent_version, after.name))
    return [Pool(*row) for row in connection.execute(query)]


class SqlPools(OrganisationRows):
    def _key(self, agent_version: str, name: str) -> dict[str, Any]:
        return {"org_id": self._org, "agent_version": agent_version, "name": name}

    def _in_pool(self, table: Table, agent_version: str, name: str) -> ColumnElement[bool]:
        return and_(*(table.c[column] == value for column, value in self._key(agent_version, name).items()))

    def mark(self, agent_version: str, name: str, count: int, now: int) -> None:
        row = {**self._key(agent_version, name), "fresh": count, "fresh_since": now, "signalled_at": now}
        MARK_POOL.run(self._connection, [row])

    def get(self, agent_version: str, name: str) -> Pool:
        query = select(*POOL_COLUMNS).where(self._in_pool(pools, agent_version, name))
        return self._one(query, lambda row: Pool(*row)) or Pool(self._org, agent_version, name)

    def put(self, pool: Pool) -> None:
        upsert(self._connection, pools, {**attributes(pool, Pool.__dataclass_fields__), "org_id": self._org})

    def names(self, agent_version: str) -> list[str]:
        query = select(learnings.c.name).where(self._current(agent_version)).distinct()
        return self._scalars(query.order_by(learnings.c.name))

    def members(
        self, agent_version: str, name: str, model: str, clusters: Collection[int] | None = None
    ) -> list[Member]:
        column = learnings.c
        embedded = and_(vectors.c.kind == column.kind, vectors.c.row_id == column.id, vectors.c.model == model)
        columns = [column.id, column.user_id, column.cluster, column.modified_at, column.trigger, column.content]
        published = and_(requests.c.org_id == column.org_id, requests.c.request_id == column.request_id)
        session = func.coalesce(requests.c.session_id, "")
        query = select(*columns, vectors.c.vector, session)
        query = query.select_from(learnings.outerjoin(vectors, embedded).outerjoin(requests, published))
        query = query.where(self._current(agent_version), column.name == name).order_by(column.id)
        if clusters is None:
            return self._rows(query, Member._make)
        queries = (query.where(column.cluster.in_(batch)) for batch in in_batches(sorted(clusters)))
        return [member for some in queries for member in self._rows(some, Member._make)]

    def _current(self, agent_version: str) -> ColumnElement[bool]:
        column = learnings.c
        return and_(
            column.org_id == self._org,
            column.kind == Kind.USER_PLAYBOOK.value,
            column.agent_version == agent_version,
            column.status == Status.CURRENT.value,
        )

    def assign(self, numbers: Mapping[int, int]) -> None:
        if numbers:
            own = and_(learnings.c.org_id == self._org, learnings.c.id == bindparam("row"))
            change = update(learnings).where(own).values(cluster=bindparam("number"))
            self._connection.execute(change, [{"row": row, "number": number} for row, number in numbers.items()])

    def clusters(self, agent_version: str, name: str) -> dict[int, Cluster]:
        query = select(*CLUSTER_COLUMNS).where(self._in_pool(clusters, agent_version, name))
        return {row.number: Cluster(*row) for row in self._connection.execute(query.order_by(clusters.c.number))}

    def cluster(self, agent_version: str, name: str, number: int) -> Cluster:
        here = self._in_pool(clusters, agent_version, name), clusters.c.number == number
        return self._one(select(*CLUSTER_COLUMNS).where(*here), lambda row: Cluster(*row)) or Cluster(number)

    def put_clusters(self, agent_version: str, name: str, *changed: Cluster) -> None:
        for row in self._cluster_rows(agent_version, name, changed):
            upsert(self._connection, clusters, row)

    def replace_clusters(self, agent_version: str, name: str, current: Sequence[Cluster]) -> None:
        self._change(delete(clusters).where(self._in_pool(clusters, agent_version, name)))
        if current:
            self._connection.execute(insert(clusters), self._cluster_rows(agent_version, name, current))

    def _cluster_rows(self, agent_version: str, name: str, rows: Sequence[Cluster]) -> list[dict[str, Any]]:
        key = self._key(agent_version, name)
        return [{**key, **attributes(cluster, Cluster.__dataclass_fields__)} for cluster in rows]
