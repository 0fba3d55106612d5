"""Finds rows that nobody will ask for again, and removes them a few at a time.

Finding reads whole tables, so it is done by a reader; only the removal of ids takes the writer, and that for a moment.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, and_, delete, exists, select, tuple_

from reflexio.models.learning import Kind
from reflexio.ports.storage import LearningFilter, TimeRange
from reflexio.storage.schema import finished_steps, interactions, learnings, lineage, receipts, vectors, windows
from reflexio.storage.tables.learnings import SqlLearnings
from reflexio.storage.vectors.search import VectorSearch

Key = tuple[str, str]
Profile = tuple[str, int]


def old_receipts(connection: Connection, before: int, limit: int) -> list[Key]:
    query = select(receipts.c.org_id, receipts.c.key).where(receipts.c.created_at < before).limit(limit)
    return [(row.org_id, row.key) for row in connection.execute(query)]


def remove_receipts(connection: Connection, keys: Sequence[Key]) -> int:
    return connection.execute(delete(receipts).where(tuple_(receipts.c.org_id, receipts.c.key).in_(keys))).rowcount


def expired_profiles(connection: Connection, before: int, limit: int) -> list[Profile]:
    query = select(learnings.c.org_id, learnings.c.id)
    query = query.where(learnings.c.kind == Kind.PROFILE.value, learnings.c.expires_at.between(1, before)).limit(limit)
    return [(row.org_id, row.id) for row in connection.execute(query)]


def remove_profiles(connection: Connection, profiles: Sequence[Profile], vectors: VectorSearch, before: int) -> int:
    """Removes them with their terms and vectors. One whose life was prolonged meanwhile stays."""
    of_organisation: defaultdict[str, list[int]] = defaultdict(list)
    for org_id, number in profiles:
        of_organisation[org_id].append(number)
    return sum(
        SqlLearnings(connection, org_id, vectors).remove(
            LearningFilter(Kind.PROFILE, ids=tuple(ids), statuses=None, expires_within=TimeRange(end=before))
        )
        for org_id, ids in of_organisation.items()
    )


def orphaned_lineage(connection: Connection, limit: int) -> list[int]:
    """Events of learnings that are deleted. Numbers of learnings are never given again."""
    is_alive = exists().where(learnings.c.id == lineage.c.learning_id)
    return list(connection.execute(select(lineage.c.id).where(~is_alive).limit(limit)).scalars())


def remove_lineage(connection: Connection, ids: Sequence[int]) -> int:
    return connection.execute(delete(lineage).where(lineage.c.id.in_(ids))).rowcount


def orphaned_windows(connection: Connection, before: int, limit: int) -> list[Key]:
    """Old windows of users of whom no turn is left: none of these windows can come again."""
    turns = interactions.c.org_id == windows.c.org_id, interactions.c.user_id == windows.c.user_id
    query = select(windows.c.org_id, windows.c.key).where(windows.c.created_at < before, ~exists().where(*turns))
    return [(row.org_id, row.key) for row in connection.execute(query.limit(limit))]


def remove_windows(connection: Connection, keys: Sequence[Key]) -> int:
    return connection.execute(delete(windows).where(tuple_(windows.c.org_id, windows.c.key).in_(keys))).rowcount


def old_keys(connection: Connection, table: Table, which: ColumnElement[bool], limit: int) -> list[Any]:
    """The primary keys of rows that nobody will ask for again."""
    return [tuple(row) for row in connection.execute(select(*table.primary_key).where(which).limit(limit))]


def remove_keys(connection: Connection, table: Table, which: ColumnElement[bool], keys: Sequence[Any]) -> int:
    """Removes those that are still old: a row may have been stored again under its key."""
    return connection.execute(delete(table).where(tuple_(*table.primary_key).in_(keys), which)).rowcount


def learned_windows(before: int) -> ColumnElement[bool]:
    """Their turns are marked as learned. Windows that were set aside stay: they say why."""
    return and_(windows.c.created_at < before, windows.c.state != "set_aside")


def forgotten_steps(before: int) -> ColumnElement[bool]:
    """Steps of windows that were planned anew, or never again."""
    return finished_steps.c.created_at < before


def dropped_vectors(seen: int) -> ColumnElement[bool]:
    """Rows that told copies in memory to drop a vector: all have read on since."""
    return and_(vectors.c.vector.is_(None), vectors.c.seq <= seen)
