"""Sessions, read from their requests: the newest request of a session stands for it in lists."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, and_, exists, func, select, tuple_

from reflexio.models.interaction import Interaction
from reflexio.models.paging import Listing, Page
from reflexio.ports.storage import SessionFilter, SessionSummary
from reflexio.storage.queries import OrganisationRows, attributes, equal, in_batches, in_time_range
from reflexio.storage.schema import interactions, learnings, requests
from reflexio.storage.tables.interactions import SAME_REQUEST, TURN_COLUMNS, read_turn

COLUMNS = [requests.c[name] for name in ("id", "session_id", "user_id", "agent_version", "source", "created_at")]
LONGEST_OPENING = 300
NEWER = requests.alias("newer")
HAS_NEWER = exists().where(
    NEWER.c.org_id == requests.c.org_id,
    NEWER.c.session_id == requests.c.session_id,
    NEWER.c.user_id == requests.c.user_id,
    tuple_(NEWER.c.created_at, NEWER.c.id) > tuple_(requests.c.created_at, requests.c.id),
)
SESSION = tuple_(requests.c.user_id, requests.c.session_id)


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
        query = query.where(interactions.c.org_id == self._org)
        batches = (query.where(interactions.c.id.in_(batch)) for batch in in_batches(turn_ids))
        return {row.turn: _read_summary(row) for some in batches for row in self._connection.execute(some)}

    def turns(self, user_id: str, session_id: str, limit: int, *, after: int = 0) -> list[Interaction]:
        query = select(*TURN_COLUMNS).join_from(interactions, requests, SAME_REQUEST)
        where = self._is(user_id, session_id), interactions.c.id > after
        return self._rows(query.where(*where).order_by(interactions.c.id).limit(limit), read_turn)

    def turns_before(self, user_id: str, session_id: str, turn_id: int, limit: int) -> list[int]:
        query = select(interactions.c.id).join_from(interactions, requests, SAME_REQUEST)
        where = self._is(user_id, session_id), interactions.c.id < turn_id
        return self._scalars(query.where(*where).order_by(interactions.c.id.desc()).limit(limit))

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

    def _complete(self, rows: Sequence[SessionSummary]) -> list[SessionSummary]:
        """The rows with what their sessions hold."""
        if not rows:
            return []
        names = [(row.user_id, row.session_id) for row in rows]
        # `session_id IN` is what the index answers; the pairs leave out other users' sessions of the same name.
        own = requests.c.org_id == self._org, requests.c.session_id.in_([name for _, name in names]), SESSION.in_(names)
        key = requests.c.user_id, requests.c.session_id
        begun = select(*key, func.min(requests.c.created_at), func.min(requests.c.id), func.count()).where(*own)
        turns = select(*key, func.count()).join_from(interactions, requests, SAME_REQUEST).where(*own)
        came = (learnings.c.org_id == requests.c.org_id) & (learnings.c.request_id == requests.c.request_id)
        taught = select(*key, func.count()).join_from(requests, learnings, came).where(*own)
        of_begun = self._by_session(begun.group_by(*key))
        of_turns, of_taught = (self._by_session(query.group_by(*key)) for query in (turns, taught))
        openings = self._openings([numbers[1] for numbers in of_begun.values()])
        return [
            SessionSummary(
                **attributes(row, ("id", "session_id", "user_id", "agent_version", "source", "created_at")),
                began_at=of_begun[name][0],
                requests=of_begun[name][2],
                turns=of_turns.get(name, (0,))[0],
                learnings=of_taught.get(name, (0,))[0],
                opening=openings.get(of_begun[name][1], ""),
            )
            for name, row in zip(names, rows, strict=True)
        ]

    def _by_session(self, query: Any) -> dict[tuple[str, str], tuple[int, ...]]:
        return {(user, session): tuple(counts) for user, session, *counts in self._connection.execute(query)}

    def _openings(self, request_numbers: Sequence[int]) -> dict[int, str]:
        """The beginning of the first turn with words in each of these requests, by the request's number."""
        words = func.substr(interactions.c.content, 1, LONGEST_OPENING)
        query = select(requests.c.id, words).join_from(interactions, requests, SAME_REQUEST)
        where = requests.c.org_id == self._org, requests.c.id.in_(request_numbers), interactions.c.content != ""
        openings: dict[int, str] = {}
        for number, text in self._connection.execute(query.where(*where).order_by(interactions.c.id)):
            openings.setdefault(number, text)
        return openings


def _newer_until(end: int) -> ColumnElement[bool]:
    return HAS_NEWER.where(NEWER.c.created_at <= end)


def _read_summary(row: Any) -> SessionSummary:
    return SessionSummary(row.id, row.session_id, row.user_id, row.agent_version, row.source, row.created_at)
