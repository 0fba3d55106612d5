"""Learnings: the lists of each kind with filters, and adding one by hand. `pages/learning.py` shows a single one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from starlette.responses import Response

from reflexio.dashboard.rendering import MOST_COUNTED
from reflexio.dashboard.rendering import query as query_string
from reflexio.dashboard.routing import Pages
from reflexio.dashboard.visit import Form, Visit
from reflexio.errors import InvalidRequest
from reflexio.learning import manual_edits
from reflexio.models.access import KeyScope
from reflexio.models.learning import Kind, Learning, PlaybookStatus, ProfileTimeToLive, Scope, Status
from reflexio.models.playbook import NewAgentPlaybook, NewUserPlaybook
from reflexio.models.profile import NewUserProfile
from reflexio.models.search import SearchMode
from reflexio.ports.storage import LearningFilter, Store
from reflexio.retrieval.service import search_learnings

pages = Pages()

ROWS, FOUND = 30, 50
KINDS = {
    Kind.AGENT_PLAYBOOK: "Agent playbooks",
    Kind.USER_PLAYBOOK: "User playbooks",
    Kind.PROFILE: "Profiles",
}
STATUSES: dict[str, tuple[Status, ...] | None] = {
    "": (Status.CURRENT,),
    "pending": (Status.PENDING,),
    "archived": (Status.ARCHIVED,),
    "replaced": (Status.MERGED, Status.SUPERSEDED),
    "any": None,
}
STATUS_WORDS = [
    ("", "In use"),
    ("pending", "From a rerun"),
    ("archived", "Archived"),
    ("replaced", "Replaced"),
    ("any", "Any"),
]
EMPTY = {
    Kind.AGENT_PLAYBOOK: "They are made when several users have taught the same; then a person approves them.",
    Kind.USER_PLAYBOOK: "A user's correction or wish becomes one, a moment after it was published.",
    Kind.PROFILE: "What users say about themselves becomes one, a moment after it was published.",
}
NAMES = ("q", "user", "version", "status", "review", "scope")


@dataclass(frozen=True)
class LearningQuery:
    """What the search of retrieval wants to know."""

    query: str
    search_mode: SearchMode = SearchMode.HYBRID
    top_k: int = FOUND
    threshold: float | None = None
    start: int = 0


@pages.get("/learnings", KeyScope.READ)
async def show_learnings(visit: Visit) -> Response:
    kind = Kind(visit.asked("kind")) if visit.asked("kind") in list(Kind) else Kind.AGENT_PLAYBOOK
    filters = {name: visit.asked(name) for name in NAMES}
    where = learning_filter(kind, filters, visit.now)
    following = None
    if filters["q"]:
        hits, _ = await search_learnings(visit.store, visit.parts.query_embedder, where, LearningQuery(filters["q"]))
        rows: Sequence[Learning] = hits.rows
    else:
        listing = await manual_edits.list_learnings(visit.store, where, ROWS, visit.cursor)
        rows, following = listing.rows, listing.cursor
    address = {"kind": kind.value, **filters}
    return visit.page(
        "learnings.html",
        kind=kind.value,
        rows=rows,
        filters=filters,
        is_filtered=any(filters.values()),
        statuses=STATUS_WORDS,
        tabs=[(_tab(each, filters), name, count) for each, name, count in await _counts(visit)],
        current_tab=_tab(kind, filters),
        reached=await _reached(visit, kind, rows),
        empty_words=EMPTY[kind],
        may_add=visit.may(KeyScope.PUBLISH),
        first_page="/learnings" + query_string(address) if visit.asked("cursor") else "",
        next_page="/learnings" + query_string(address, cursor=following) if following else "",
    )


def learning_filter(kind: Kind, asked: Mapping[str, str], now: int) -> LearningFilter:
    """The filter of a list. What names nothing that exists does not filter."""
    reviews = [PlaybookStatus(asked["review"])] if asked["review"] in list(PlaybookStatus) else None
    return LearningFilter(
        kind,
        user_id=asked["user"] or None if kind is not Kind.AGENT_PLAYBOOK else None,
        agent_version=asked["version"] or None if kind is not Kind.PROFILE else None,
        statuses=STATUSES.get(asked["status"], (Status.CURRENT,)),
        reviews=tuple(reviews) if reviews and kind is Kind.AGENT_PLAYBOOK else None,
        scope=Scope(asked["scope"]) if asked["scope"] in list(Scope) else None,
        alive_at=now if kind is Kind.PROFILE else None,
    )


async def _reached(visit: Visit, kind: Kind, rows: Sequence[Learning]) -> dict[int, int]:
    """In how many prompts each of these rows was."""
    ids = {row.public_id: row.id for row in rows}
    counts = await visit.store.read(lambda tx: tx.exposures.counts(kind, list(ids), MOST_COUNTED + 1))
    return {ids[public_id]: count for public_id, count in counts.items()}


def _tab(kind: Kind, filters: Mapping[str, str]) -> str:
    """The list of another kind, with the filters that it has too."""
    kept = {"q": filters["q"], "user": "" if kind is Kind.AGENT_PLAYBOOK else filters["user"]}
    return "/learnings" + query_string({"kind": kind.value, **kept})


async def _counts(visit: Visit) -> list[tuple[Kind, str, str]]:
    def read(tx: Any) -> list[int]:
        filters = (LearningFilter(kind, alive_at=visit.now if kind is Kind.PROFILE else None) for kind in KINDS)
        return [tx.learnings.count_up_to(where, MOST_COUNTED + 1) for where in filters]

    counts = await visit.store.read(read)
    shown = [f"{MOST_COUNTED // 1000}k+" if count > MOST_COUNTED else f"{count:,}" for count in counts]
    return [(kind, name, count) for (kind, name), count in zip(KINDS.items(), shown, strict=True)]


@pages.get("/learnings/new", KeyScope.READ)
async def new_learning(visit: Visit) -> Response:
    visit.require(KeyScope.PUBLISH)
    kind = visit.asked("kind") if visit.asked("kind") in list(Kind) else Kind.USER_PLAYBOOK.value
    return _form(visit, kind, {name: visit.asked(name) for name in ("user", "version", "trigger", "content")})


@pages.post("/learnings/new", KeyScope.PUBLISH)
async def add_learning(visit: Visit) -> Response:
    """Adds one by hand. What is wrong is said above the form, which keeps what was typed."""
    form = await visit.form()
    kind = form.get("kind", "")
    if kind not in list(Kind):
        raise InvalidRequest("Choose what to add.")
    try:
        new = ADDED[Kind(kind)](form)
        learning, scope = new.learning(visit.now), new.scope
    except ValidationError as error:
        return _form(visit, kind, dict(form), describe_validation(error), 422)
    parts = visit.parts
    added = await manual_edits.add(visit.store, parts.scopes, parts.immediate_embedder, [learning], [scope])
    number = await _row_of(visit.store, learning.kind, added.ids[0])
    return visit.go(f"/learnings/{number}", "Added.")


def _form(visit: Visit, kind: str, values: Mapping[str, str], error: str = "", status: int = 200) -> Response:
    return visit.page(
        "learning_new.html",
        status=status,
        kind=kind,
        values=values,
        error=error,
        kinds=[(each.value, name) for each, name in KINDS.items()],
        lifetimes=[(each.value, each.value.replace("_", " ")) for each in ProfileTimeToLive],
    )


def _scope(form: Form) -> str | None:
    return form.get("scope") or None


ADDED: dict[Kind, Callable[[Form], NewUserProfile | NewUserPlaybook | NewAgentPlaybook]] = {
    Kind.PROFILE: lambda form: NewUserProfile.model_validate(
        {
            "user_id": form.get("user", ""),
            "content": form.get("content", "").strip(),
            "scope": _scope(form),
            "profile_time_to_live": form.get("lifetime") or ProfileTimeToLive.INFINITY,
        }
    ),
    Kind.USER_PLAYBOOK: lambda form: NewUserPlaybook.model_validate(
        {"user_id": form.get("user") or None, **_playbook(form)}
    ),
    Kind.AGENT_PLAYBOOK: lambda form: NewAgentPlaybook.model_validate(_playbook(form)),
}


def _playbook(form: Form) -> dict[str, Any]:
    return {
        "content": form.get("content", "").strip(),
        "trigger": form.get("trigger", "").strip() or None,
        "rationale": form.get("rationale", "").strip() or None,
        "agent_version": form.get("version", "").strip(),
        "scope": _scope(form),
    }


def describe_validation(error: ValidationError) -> str:
    """The first fault in words."""
    first = error.errors()[0]
    field = str(first["loc"][0]) if first["loc"] else ""
    names = {"content": "The text", "user_id": "The user", "trigger": "The trigger", "agent_version": "The version"}
    return f"{names.get(field, field.replace('_', ' ').capitalize())}: {first['msg'].removeprefix('Value error, ')}."


async def _row_of(store: Store, kind: Kind, public_id: str) -> int:
    if kind is not Kind.PROFILE:
        return int(public_id)
    where = LearningFilter(kind, keys=(public_id,), statuses=None)
    found = await store.read(lambda tx: tx.learnings.get(where))
    return found.id if found else 0
