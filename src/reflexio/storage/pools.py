"""Pools of user playbooks that are clustered together, and how the learner dealt with each cluster."""

from collections.abc import Mapping

from sqlalchemy import (
    ColumnElement,
    Connection,
    Insert,
    and_,
    bindparam,
    case,
    literal_column,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from reflexio.models.learning import Kind
from reflexio.models.status import Status
from reflexio.ports.storage import Cluster, Member, Pool
from reflexio.storage.hot import Hot
from reflexio.storage.schema import clusters, learnings, pools, vectors
from reflexio.storage.upsert import put

FIELDS = list(Pool.__dataclass_fields__)
COLUMNS = [pools.c[name] for name in FIELDS]
STATE = list(Cluster.__dataclass_fields__)


def _mark(dialect: str) -> Insert:
    statement = (postgresql.insert if dialect == "postgresql" else sqlite.insert)(pools)
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

    def members(self, agent_version: str, name: str, model: str, cluster: int | None = None) -> list[Member]:
        column = learnings.c
        made = and_(vectors.c.kind == column.kind, vectors.c.row_id == column.id, vectors.c.model == model)
        rows = [column.id, column.user_id, column.cluster, column.modified_at, column.trigger, column.content]
        query = select(*rows, vectors.c.vector).outerjoin(vectors, made)
        query = query.where(self._current(agent_version), column.name == name).order_by(column.id)
        if cluster is not None:
            query = query.where(column.cluster == cluster)
        return [Member._make(row) for row in self._connection.execute(query)]

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

    def clusters(self, agent_version: str, name: str) -> dict[int, Cluster]:
        here = and_(clusters.c.org_id == self._org, clusters.c.agent_version == agent_version, clusters.c.name == name)
        query = select(*(clusters.c[each] for each in STATE)).where(here)
        return {row.number: Cluster(*row) for row in self._connection.execute(query)}

    def note(self, agent_version: str, name: str, cluster: Cluster) -> None:
        row = {"org_id": self._org, "agent_version": agent_version, "name": name}
        put(self._connection, clusters, {**row, **{each: getattr(cluster, each) for each in STATE}})
