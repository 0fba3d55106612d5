"""Sessions, read from their requests: the newest request of a session stands for it in lists.

Numbers of a session are scalar subqueries, one inside the other: as joins, SQLite would begin with the turns of
everybody.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, exists, func, select, tuple_

from reflexio.models.interaction import Interaction
from reflexio.models.paging import Listing, Page
from reflexio.ports.storage import SessionFilter, SessionSummary
from reflexio.storage.queries import OrganisationRows, equal, in_batches, in_time_range, owned_by
from reflexio.storage.schema import interactions, learnings, requests
from reflexio.storage.tables.interactions import SAME_REQUEST, TURN_COLUMNS, read_turn

NAMES = ("id", "session_id", "user_id", "agent_version", "source", "created_at")
COLUMNS = [requests.c[name] for name in NAMES]
LONGEST_OPENING = 300
NEWER, MEMBER = requests.alias("newer"), requests.alias("member")


def _same_session(other: Any) -> ColumnElement[bool]:
    column = requests.c
    named = other.c.user_id == column.user_id, other.c.session_id == column.session_id
    return and_(other.c.org_id == column.org_id, *named)


HAS_NEWER = exists().where(
    _same_session(NEWER), tuple_(NEWER.c.created_at, NEWER.c.id) > tuple_(requests.c.created_at, requests.c.id)
)


def _beside_member(rows: Any) -> ColumnElement[bool]:
    return and_(rows.c.org_id == MEMBER.c.org_id, rows.c.request_id == MEMBER.c.request_id)


def _sum_over_members(rows: Any) -> ColumnElement[int]:
    """How many rows of another table came with the requests of the session."""
    count = select(func.count()).select_from(rows).where(_beside_member(rows)).correlate(MEMBER).scalar_subquery()
    return select(func.sum(count)).where(_same_session(MEMBER)).correlate(requests).scalar_subquery()


def _of_members(query: Select[Any]) -> Any:
    return query.select_from(MEMBER).where(_same_session(MEMBER)).correlate(requests).scalar_subquery()


FIRST_REQUEST = _of_members(select(MEMBER.c.request_id).order_by(MEMBER.c.created_at, MEMBER.c.id).limit(1))
OPENING = (
    select(func.substr(interactions.c.content, 1, LONGEST_OPENING))
    .where(interactions.c.org_id == requests.c.org_id, interactions.c.request_id == FIRST_REQUEST)
    .where(interactions.c.content != "")
    .order_by(interactions.c.id)
    .limit(1)
    .correlate(requests)
    .scalar_subquery()
)
NUMBERS = {
    "began_at": _of_members(select(func.min(MEMBER.c.created_at))),
    "requests": _of_members(select(func.count())),
    "turns": _sum_over_members(interactions),
    "learnings": _sum_over_members(learnings),
    "opening": OPENING,
}


class SqlSessions(OrganisationRows):
    def page(self, where: SessionFilter, page: Page) -> Listing[SessionSummary]:
        named = equal(requests, where, ("user_id", "agent_version"))
        own = requests.c.org_id == self._org, *named, *in_time_range(requests.c.created_at, where.within)
        # Among sessions of a time range, one that went on after its end is listed by its newest request within.
        newer = HAS_NEWER if where.within.end is None else _newer_until(where.within.end)
        listing = self._page(select(*COLUMNS).where(*own, ~newer), requests, page, _read_summary)
        return Listing(self._complete(listing.rows), listing.end)

    def get(self, user_id: str, session_id: str) -> SessionSummary | None:
        newest = requests.c.created_at.desc(), requests.c.id.desc()
        query = select(*COLUMNS).where(self._is(user_id, session_id)).order_by(*newest).limit(1)
        row = self._one(query, _read_summary)
        return self._complete([row])[0] if row else None

    def of_turns(self, turn_ids: Sequence[int]) -> dict[int, SessionSummary]:
        query = select(interactions.c.id.label("turn"), *COLUMNS).join_from(interactions, requests, SAME_REQUEST)
        query = query.where(owned_by(interactions.c.org_id, self._org))
        batches = (query.where(interactions.c.id.in_(batch)) for batch in in_batches(turn_ids))
        return {row.turn: _read_summary(row) for some in batches for row in self._connection.execute(some)}

    def turns(self, user_id: str, session_id: str, limit: int, *, after: int = 0) -> list[Interaction]:
        where = self._of_session(user_id, session_id), interactions.c.id > after
        return self._rows(select(*TURN_COLUMNS).where(*where).order_by(interactions.c.id).limit(limit), read_turn)

    def turns_before(self, user_id: str, session_id: str, turn_id: int, limit: int) -> list[int]:
        where = self._of_session(user_id, session_id), interactions.c.id < turn_id
        query = select(interactions.c.id).where(*where).order_by(interactions.c.id.desc())
        return self._scalars(query.limit(limit))

    def agent_versions(self, most: int) -> list[str]:
        versions: list[str] = []
        while len(versions) < most:
            query = select(func.min(requests.c.agent_version)).where(requests.c.org_id == self._org)
            if versions:
                query = query.where(requests.c.agent_version > versions[-1])
            following = self._connection.execute(query).scalar_one()
            if following is None:
                break
            versions.append(following)
        return versions

    def _is(self, user_id: str, session_id: str) -> ColumnElement[bool]:
        own = requests.c.org_id == self._org
        return and_(own, requests.c.session_id == session_id, requests.c.user_id == user_id)

    def _of_session(self, user_id: str, session_id: str) -> ColumnElement[bool]:
        own = select(requests.c.request_id).where(self._is(user_id, session_id))
        return and_(interactions.c.org_id == self._org, interactions.c.request_id.in_(own))

    def _complete(self, rows: Sequence[SessionSummary]) -> list[SessionSummary]:
        """The rows with what their sessions hold."""
        held = self._numbers(rows)
        return [replace(row, **{name: value for name, value in held[row.id].items() if value}) for row in rows]

    def _numbers(self, rows: Sequence[SessionSummary]) -> dict[int, dict[str, Any]]:
        numbers = (number.label(name) for name, number in NUMBERS.items())
        query = select(requests.c.id, *numbers).where(owned_by(requests.c.org_id, self._org))
        found = self._connection.execute(query.where(requests.c.id.in_([row.id for row in rows]))).all()
        return {row.id: {name: getattr(row, name) for name in NUMBERS} for row in found}


def _newer_until(end: int) -> ColumnElement[bool]:
    return HAS_NEWER.where(NEWER.c.created_at <= end)


def _read_summary(row: Any) -> SessionSummary:
    return SessionSummary(row.id, row.session_id, row.user_id, row.agent_version, row.source, row.created_at)
