"""The playground: the context that an agent would get for a message, why each line is in it, and what was left out."""

import time
from dataclasses import dataclass

from starlette.responses import Response

from reflexio.dashboard.forms import options, parse, whole_number
from reflexio.dashboard.routing import Pages
from reflexio.dashboard.visit import Visit
from reflexio.errors import InvalidRequest
from reflexio.interactions.sessions import agent_versions
from reflexio.models.access import KeyScope
from reflexio.models.paging import Page
from reflexio.models.search import ContextRequest
from reflexio.ports.storage import RequestFilter, Tx
from reflexio.retrieval.explanation import ContextReason, explain
from reflexio.retrieval.service import compose_context

pages = Pages()

LONGEST_MESSAGE = 4000
"""Characters: the message is in the address, so that a page can be shared and reloaded."""
USUAL_TOKENS, MOST_TOKENS = 1000, 100_000
RECENT, SUGGESTED = 200, 12
"""Requests among which users to suggest are looked for, and how many are suggested."""


@dataclass(frozen=True)
class PlayedContext:
    """The context for a message, the learnings in it, and those that were left out, most relevant first."""

    text: str
    tokens: int
    included: tuple[ContextReason, ...]
    left_out: tuple[ContextReason, ...]
    milliseconds: float
    is_degraded: bool


@pages.get("/playground", KeyScope.READ)
async def playground(visit: Visit) -> Response:
    """A form for a message and, once there is one or a user is named, the context for it."""
    message, user, version = visit.asked("message"), visit.asked("user"), visit.asked("version")
    max_tokens = whole_number(visit.asked("tokens"), USUAL_TOKENS, least=1, most=MOST_TOKENS)
    include_pending = visit.asked("pending") == "yes"
    error, played = "", None
    try:
        if len(message) > LONGEST_MESSAGE:
            raise InvalidRequest(f"A message has at most {LONGEST_MESSAGE:,} characters here; get_context takes more.")
        if message or user:
            values = {
                "query": message,
                "user_id": user or None,
                "agent_version": version or None,
                "max_tokens": max_tokens,
                "include_pending": include_pending,
            }
            played = await _play(visit, parse(ContextRequest, values))
    except InvalidRequest as refused:
        error = str(refused)
    versions = await agent_versions(visit.store)
    return visit.page(
        "playground.html",
        status=422 if error else 200,
        asked={
            "message": message,
            "user": user,
            "version": version,
            "tokens": max_tokens,
            "pending": include_pending,
        },
        error=error,
        played=played,
        versions=options("Any version", versions, version),
        users=await visit.store.read(_recent_users),
    )


async def _play(visit: Visit, request: ContextRequest) -> PlayedContext:
    started = time.perf_counter()
    composed = await compose_context(visit.store, visit.parts.query_embedder, request, visit.now)
    milliseconds = (time.perf_counter() - started) * 1000
    reasons = explain(composed, request.query or "")
    return PlayedContext(
        composed.chosen.text,
        composed.chosen.tokens,
        tuple(reason for reason in reasons if reason.is_included),
        tuple(reason for reason in reasons if not reason.is_included),
        milliseconds,
        composed.is_degraded,
    )


def _recent_users(tx: Tx) -> list[str]:
    """Users to suggest: those of the newest requests."""
    newest = tx.requests.page(RequestFilter(), Page(RECENT)).rows
    return list(dict.fromkeys(request.user_id for request in newest))[:SUGGESTED]
