"""Conversations as people look at them: lists of sessions, a search of what was said, and one session in parts."""

from collections.abc import Sequence
from dataclasses import dataclass

from reflexio.errors import NotFound
from reflexio.models.interaction import Interaction
from reflexio.models.learning import Kind, Learning
from reflexio.models.paging import Listing, Page, page
from reflexio.ports.storage import LearningFilter, SessionFilter, SessionSummary, Store, TimeRange, TurnFilter, Tx

MOST_FOUND = 300
"""Turns that a search of what was said looks at, best first."""
TURNS_AT_ONCE, TURNS_BEFORE = 100, 20
"""Turns on one page of a session; turns shown before the one that a link leads to."""
MOST_LEARNINGS = 400
AFTER_LAST_TURN = 7 * 86_400
"""Windows that reach over several sessions are learned from when the last of these has come."""
MOST_VERSIONS = 50


@dataclass(frozen=True)
class FoundSession:
    """A session with the turns that have words of the query, best first."""

    session: SessionSummary
    turns: list[Interaction]


@dataclass(frozen=True)
class SessionPart:
    """A stretch of a session's turns, and what was learned from the whole of it.

    `following` and `preceding` are the numbers of turns after which the next and the previous part begin.
    """

    session: SessionSummary
    turns: list[Interaction]
    learnings: list[Learning]
    preceding: int | None
    following: int | None


async def list_sessions(store: Store, where: SessionFilter, limit: int, cursor: str | None) -> Listing[SessionSummary]:
    """Newest first."""
    wanted = page(limit, cursor)
    return await store.read(lambda tx: tx.sessions.page(where, wanted))


async def agent_versions(store: Store) -> list[str]:
    """The agent versions that published, by name."""
    return await store.read(lambda tx: tx.sessions.agent_versions(MOST_VERSIONS))


async def search_sessions(store: Store, words: str, where: SessionFilter, limit: int) -> list[FoundSession]:
    """The sessions whose turns have these words, best first."""

    def read(tx: Tx) -> list[FoundSession]:
        matched = tx.interactions.by_words(TurnFilter(where.user_id, within=where.within), words, MOST_FOUND)
        sessions, turns = tx.sessions.of_turns(matched.ids), tx.interactions.many(matched.ids)
        found: dict[tuple[str, str], list[Interaction]] = {}
        for number in matched.ids:
            session = sessions.get(number)
            if session and number in turns and where.agent_version in (None, session.agent_version):
                found.setdefault((session.user_id, session.session_id), []).append(turns[number])
        complete = ((tx.sessions.get(*name), of_session) for name, of_session in list(found.items())[:limit])
        return [FoundSession(session, of_session) for session, of_session in complete if session]

    return await store.read(read)


async def session_of_turn(store: Store, turn_id: int) -> SessionSummary:
    """Raises NotFound for a turn that is not stored."""
    found = await store.read(lambda tx: tx.sessions.of_turns([turn_id]))
    if turn_id not in found:
        raise NotFound(what="turn", id=turn_id)
    return found[turn_id]


async def session_of_request(store: Store, request_id: str) -> tuple[str, str]:
    """The user and the session of a request. Raises NotFound."""
    request = await store.read(lambda tx: tx.requests.get(request_id))
    if request is None:
        raise NotFound(what="request", id=request_id)
    return request.user_id, request.session_id


async def read_session(store: Store, user_id: str, session_id: str, *, after: int = 0, around: int = 0) -> SessionPart:
    """The turns behind number `after`, or those around a turn. Raises NotFound."""
    return await store.read(lambda tx: _read_part(tx, user_id, session_id, after, around))


def _read_part(tx: Tx, user_id: str, session_id: str, after: int, around: int) -> SessionPart:
    name = user_id, session_id
    session = tx.sessions.get(*name)
    if session is None:
        raise NotFound(what="session", id=session_id)
    if around:
        before = tx.sessions.turns_before(*name, around, TURNS_BEFORE + 1)
        after = before[-1] if len(before) > TURNS_BEFORE else 0
    turns = tx.sessions.turns(*name, TURNS_AT_ONCE + 1, after=after)
    has_more, turns = len(turns) > TURNS_AT_ONCE, turns[:TURNS_AT_ONCE]
    return SessionPart(
        session,
        turns,
        _learned_from(tx, user_id, turns),
        _start_before(tx, name, turns[0].interaction_id) if turns and after else None,
        turns[-1].interaction_id if has_more else None,
    )


def _start_before(tx: Tx, name: tuple[str, str], turn_id: int) -> int:
    before = tx.sessions.turns_before(*name, turn_id, TURNS_AT_ONCE + 1)
    return before[-1] if len(before) > TURNS_AT_ONCE else 0


def _learned_from(tx: Tx, user_id: str, turns: Sequence[Interaction]) -> list[Learning]:
    """What cites one of the turns: what came with their requests, and what came a little later."""
    if not turns:
        return []
    numbers = {turn.interaction_id for turn in turns}
    came_with = tx.learnings.of_requests(list(dict.fromkeys(turn.request_id for turn in turns)), MOST_LEARNINGS)
    since = TimeRange(turns[0].created_at, turns[-1].created_at + AFTER_LAST_TURN)
    kinds = (Kind.PROFILE, Kind.USER_PLAYBOOK)
    filters = (LearningFilter(kind, user_id=user_id, statuses=None, within=since) for kind in kinds)
    later = (row for where in filters for row in tx.learnings.page(where, Page(MOST_LEARNINGS)).rows)
    rows = {row.id: row for row in (*came_with, *later)}
    return [rows[number] for number in sorted(rows) if cited_turns(rows[number]) & numbers]


def cited_turns(learning: Learning) -> set[int]:
    """The numbers of the turns that a learning rests on."""
    numbers = learning.details.get("source_interaction_ids")
    return {int(number) for number in numbers} if isinstance(numbers, list) else set()
