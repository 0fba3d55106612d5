"""Conversations: the list of sessions, a search of what was said, and one session as a chat with what it taught."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import orjson
from markupsafe import Markup
from starlette.responses import Response

from reflexio.dashboard.marking import LinkedQuote, mark_quotes, mark_words, word_places
from reflexio.dashboard.rendering import query as query_string
from reflexio.dashboard.routing import Pages
from reflexio.dashboard.visit import Visit
from reflexio.interactions.sessions import (
    agent_versions,
    cited_turns,
    list_sessions,
    read_session,
    search_sessions,
    session_of_request,
    session_of_turn,
)
from reflexio.models.access import KeyScope
from reflexio.models.interaction import Interaction, RetrievedLearning
from reflexio.models.learning import Learning
from reflexio.ports.storage import SessionFilter, SessionSummary, TimeRange
from reflexio.retrieval.references import find_references

pages = Pages()

ROWS = 25
LONGEST_SHOWN = 20_000
LONGEST_DATA = 4_000
LONGEST_EXCERPT, BEFORE_WORD = 240, 60
AGENT_ROLES, USER_ROLES = ("agent", "assistant", "ai", "bot", "model"), ("user", "human", "customer")


def session_path(user_id: str, session_id: str, **more: object) -> str:
    """The page of a session. Ids may hold any sign, also "..", so they are no parts of the path."""
    return "/conversations/session?" + urlencode({"user": user_id, "id": session_id, **more})


def turn_path(turn_id: int) -> str:
    return f"/conversations/turn/{turn_id}"


@dataclass(frozen=True)
class SessionRow:
    """A session in the list. `excerpts` are what was found, with the words marked."""

    session: SessionSummary
    path: str
    excerpts: Sequence[Markup] = ()


@dataclass(frozen=True)
class ShownTurn:
    """A turn of the chat: whose it is, its words with quotes marked, and what was learned from it or was used."""

    turn: Interaction
    side: str
    words: Markup
    cut: int
    tools: Sequence[tuple[str, str, str]]
    learned: Sequence[Learning]
    used: Sequence[tuple[RetrievedLearning, Learning | None]]


@pages.get("/conversations", KeyScope.READ)
async def show_conversations(visit: Visit) -> Response:
    filters = {name: visit.asked(name) for name in ("q", "user", "version", "from", "to")}
    within = TimeRange(_first_second(filters["from"]), _last_second(filters["to"]))
    where = SessionFilter(filters["user"] or None, filters["version"] or None, within)
    following = None
    if filters["q"]:
        found = await search_sessions(visit.store, filters["q"], where, ROWS)
        rows = [_row(one.session, [_excerpt(turn, filters["q"]) for turn in one.turns[:2]]) for one in found]
    else:
        listing = await list_sessions(visit.store, where, ROWS, visit.cursor)
        rows, following = [_row(session) for session in listing.rows], listing.cursor
    return visit.page(
        "conversations.html",
        rows=rows,
        filters=filters,
        is_filtered=any(filters.values()),
        versions=await agent_versions(visit.store),
        first_page="/conversations" + query_string(filters) if visit.asked("cursor") else "",
        next_page="/conversations" + query_string(filters, cursor=following) if following else "",
    )


@pages.get("/conversations/session", KeyScope.READ)
async def show_session(visit: Visit) -> Response:
    user_id, session_id = visit.asked("user"), visit.asked("id")
    around, after = visit.asked_number("turn"), visit.asked_number("after")
    part = await read_session(visit.store, user_id, session_id, after=after, around=around)
    references = [reference for turn in part.turns for reference in turn.retrieved_learnings]
    used = await visit.store.read(lambda tx: find_references(tx, references))
    return visit.page(
        "session.html",
        session=part.session,
        turns=[_show(turn, part.learnings, used) for turn in part.turns],
        learnings=part.learnings,
        target=around,
        earlier=None if part.preceding is None else session_path(user_id, session_id, after=part.preceding),
        later=None if part.following is None else session_path(user_id, session_id, after=part.following),
        of_user="/conversations" + query_string({"user": user_id}),
    )


@pages.get("/conversations/turn/{id}", KeyScope.READ)
async def find_turn(visit: Visit) -> Response:
    """Leads to the session of a turn."""
    number = visit.number("id", "turn")
    session = await session_of_turn(visit.store, number)
    return visit.go(session_path(session.user_id, session.session_id, turn=number), anchor=f"turn-{number}")


@pages.get("/conversations/request", KeyScope.READ)
async def find_request(visit: Visit) -> Response:
    """Leads to the session of a request."""
    return visit.go(session_path(*await session_of_request(visit.store, visit.asked("id"))))


def _row(session: SessionSummary, excerpts: Sequence[Markup] = ()) -> SessionRow:
    return SessionRow(session, session_path(session.user_id, session.session_id), excerpts)


def _excerpt(turn: Interaction, words: str) -> Markup:
    """The part of a turn around the first of the words."""
    text = (turn.content or turn.expert_content)[:LONGEST_SHOWN]
    places = word_places(text, words)
    start = max(0, places[0][0] - BEFORE_WORD) if places else 0
    part = ("… " if start else "") + text[start : start + LONGEST_EXCERPT].strip()
    return mark_words(part + (" …" if start + LONGEST_EXCERPT < len(text) else ""), words)


def _show(turn: Interaction, learnings: Sequence[Learning], used: Mapping[tuple[str, str], Learning]) -> ShownTurn:
    learned = [learning for learning in learnings if turn.interaction_id in cited_turns(learning)]
    quotes = [
        LinkedQuote(str(row.details.get("source_span") or ""), f"/learnings/{row.id}", row.content) for row in learned
    ]
    return ShownTurn(
        turn=turn,
        side=_side(turn.role),
        words=mark_quotes(turn.content[:LONGEST_SHOWN], quotes),
        cut=max(0, len(turn.content) - LONGEST_SHOWN),
        tools=[(tool.tool_name, tool.status or "", _data(tool.tool_data)) for tool in turn.tools_used],
        learned=learned,
        used=[(reference, used.get((reference.kind, reference.learning_id))) for reference in turn.retrieved_learnings],
    )


def _side(role: str) -> str:
    """Whose bubble it is: the user's, the agent's, or that of neither."""
    name = role.strip().lower()
    return "agent" if name in AGENT_ROLES else "user" if name in USER_ROLES else "other"


def _data(data: object) -> str:
    text = orjson.dumps(data, option=orjson.OPT_INDENT_2).decode() if data else ""
    return text if len(text) <= LONGEST_DATA else text[:LONGEST_DATA] + " …"


def _first_second(text: str) -> int | None:
    try:
        return int(datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp())
    except ValueError:
        return None


def _last_second(text: str) -> int | None:
    first = _first_second(text)
    return None if first is None else first + int(timedelta(days=1).total_seconds()) - 1
