"""The review queue: one proposal after the other with its evidence, and decisions that can be taken back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from reflexio.aggregation import review
from reflexio.aggregation.review import state_of, version_seen
from reflexio.aggregation.review_queue import WORDING, ReviewList, review_list, review_queue
from reflexio.dashboard.forms import options, parse
from reflexio.dashboard.rendering import query
from reflexio.dashboard.routing import Pages
from reflexio.dashboard.visit import Form, Visit
from reflexio.errors import Conflict, InvalidRequest
from reflexio.interactions.sessions import agent_versions
from reflexio.models.access import KeyScope
from reflexio.models.learning import Kind, Learning, PlaybookStatus, Scope
from reflexio.models.playbook import UpdateAgentPlaybookRequest
from reflexio.models.review import (
    GetReviewQueueRequest,
    ReviewAgentPlaybooksRequest,
    ReviewItem,
    UndoReviewRequest,
    taught_by,
)
from reflexio.organisations.configuration import stored_config
from reflexio.ports.storage import LearningFilter, LineageEvent, Tx
from reflexio.retrieval.filters import get_one

pages = Pages()

LISTED = 25
MOST_DONE = 100
"""Decisions that one notice offers to take back."""
FILTERS = ("version", "type", "scope", "cursor")
EDITED = ("trigger", "content", "rationale", "scope")
DECISIONS = {"approve": PlaybookStatus.APPROVED, "reject": PlaybookStatus.REJECTED, "reopen": PlaybookStatus.PENDING}
Draft = Mapping[str, str]
"""What was typed into the form of the wording, shown again when it was not stored."""


@dataclass(frozen=True)
class OpenProposal:
    """The proposal that is open. `previous` and `following` are the ids beside it in the list, 0 at the ends."""

    item: ReviewItem
    playbook: Learning
    state: str
    previous: int
    following: int


@dataclass(frozen=True)
class ListedProposal:
    """A proposal in the list."""

    playbook: Learning
    state: str
    taught_by: str


@dataclass(frozen=True)
class Decided:
    """A decision that was just made, and can be taken back while the playbook is in this state."""

    playbook: Learning
    event: LineageEvent
    state: str


@dataclass(frozen=True)
class ChangedMeanwhile:
    """What somebody else has changed since a page was opened: fields with the old and the new text."""

    playbook: Learning
    fields: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Refusal:
    """Why a decision was not stored."""

    message: str
    changes: Sequence[ChangedMeanwhile] = ()


@pages.get("/review", KeyScope.READ)
async def queue(visit: Visit) -> Response:
    """The list of proposals that wait, and one of them with everything that bears on it."""
    return await _show(visit, _number(visit.asked("playbook")))


@pages.post("/review/decide", KeyScope.REVIEW)
async def decide(visit: Visit) -> Response:
    """Approves, rejects or reopens one playbook or several, all or none."""
    form = await visit.form()
    seen = _seen(form)
    ids = [number for text in form.getlist("playbook") if (number := _number(text))]
    if not ids:
        return await _show(visit, _number(visit.asked("open")), refusal=Refusal("Choose playbooks first."), status=422)
    try:
        decision, reason = _decision(form), form.get("reason", "")
        values = {"agent_playbook_ids": ids, "playbook_status": decision, "reason": reason}
        request = parse(ReviewAgentPlaybooksRequest, values)
        chosen = {number: seen.get(number, "unknown") for number in ids}
        await review.decide_many(visit.store, visit.parts.clock, request, owner=visit.caller.owner, seen=chosen)
    except (Conflict, InvalidRequest) as error:
        return await _refuse(visit, ids, seen, error)
    return visit.go(_next_address(visit, ids))


@pages.post("/review/edit", KeyScope.REVIEW)
async def edit(visit: Visit) -> Response:
    """Changes wording, trigger or scope of one playbook, and decides about it when that was asked for."""
    form = await visit.form()
    seen, draft = _seen(form), {name: form.get(name, "").replace("\r\n", "\n").strip() for name in EDITED}
    number = _number(form.get("playbook", ""))
    where = LearningFilter(Kind.AGENT_PLAYBOOK, ids=(number,))
    playbook = await visit.store.read(lambda tx: get_one(tx, where))
    changed = {name: text for name, text in draft.items() if text != str(getattr(playbook, name)).strip()}
    decision = _decision(form) if form.get("decision") else None
    if not changed and decision is None:
        return visit.go(_address(visit, number), "Nothing was changed.")
    try:
        values = {"agent_playbook_id": number, "playbook_status": decision, "reason": form.get("reason", ""), **changed}
        request = parse(UpdateAgentPlaybookRequest, values)
        chosen = {number: seen.get(number, "unknown")}
        embed = visit.parts.immediate_embedder.embed
        await review.edit(visit.store, visit.parts.clock, request, owner=visit.caller.owner, seen=chosen, embed=embed)
    except (Conflict, InvalidRequest) as error:
        return await _refuse(visit, [number], seen, error, draft=draft)
    if decision is None:
        return visit.go(_address(visit, number), "The new wording is stored; it still waits for a decision.")
    return visit.go(_next_address(visit, [number]))


@pages.post("/review/undo", KeyScope.REVIEW)
async def undo(visit: Visit) -> Response:
    """Takes the last decision about each playbook back, and the edit that came with it."""
    form = await visit.form()
    seen = _seen(form)
    ids = [number for text in form.getlist("playbook") if (number := _number(text))]
    try:
        request = parse(UndoReviewRequest, {"agent_playbook_ids": ids})
        chosen = {number: seen.get(number, "unknown") for number in ids}
        await review.undo(visit.store, visit.parts.clock, request, owner=visit.caller.owner, seen=chosen)
    except (Conflict, InvalidRequest) as error:
        return await _refuse(visit, ids, seen, error)
    words = "The decision was taken back." if len(ids) == 1 else f"{len(ids)} decisions were taken back."
    return visit.go(_address(visit, ids[0]), words)


async def _show(
    visit: Visit, number: int, *, status: int = 200, refusal: Refusal | None = None, draft: Draft | None = None
) -> Response:
    filters, listing = _filters(visit), await review_list(visit.store, _selection(visit))
    done = await visit.store.read(lambda tx: _read_done(tx, visit.asked("done")))
    opened = await _open(visit, listing, number)
    versions = await agent_versions(visit.store)
    config = await visit.store.read(stored_config)
    return visit.page(
        "review.html",
        status=status,
        listing=[_listed(playbook) for playbook in listing.playbooks],
        waiting_count=listing.waiting_count,
        next_cursor=listing.next_cursor,
        opened=opened,
        done=done,
        refusal=refusal,
        draft=draft or (_draft(opened.playbook) if opened else {}),
        is_editing=draft is not None or visit.asked("edit") == "yes",
        filters=filters,
        types=options("All types", [entry.playbook_name for entry in config.playbook_configs], filters["type"]),
        versions=options("All versions", versions, filters["version"]),
    )


def _listed(playbook: Learning) -> ListedProposal:
    return ListedProposal(playbook, state_of(playbook), taught_by(playbook.details.get("support")))


async def _open(visit: Visit, listing: ReviewList, number: int) -> OpenProposal | None:
    ids = [playbook.id for playbook in listing.playbooks]
    number = number or next(iter(ids), 0)
    if not number:
        return None
    where = LearningFilter(Kind.AGENT_PLAYBOOK, ids=(number,))
    # Read before the item: what changes in between makes a decision be refused, never one about other words.
    playbook = await visit.store.read(lambda tx: get_one(tx, where))
    request = GetReviewQueueRequest(agent_playbook_id=number)
    queue = await review_queue(visit.store, visit.parts.embedder.name, request)
    place = ids.index(number) if number in ids else -1
    previous = ids[place - 1] if place > 0 else 0
    following = ids[place + 1] if place + 1 < len(ids) else 0
    return OpenProposal(queue.items[0], playbook, state_of(playbook), previous, following)


def _read_done(tx: Tx, asked: str) -> list[Decided]:
    """The decisions about the playbooks that an address names, as far as they still stand."""
    ids = [number for text in asked.split(",")[:MOST_DONE] if (number := _number(text))]
    rows = tx.learnings.many(ids)
    found = []
    for row in (rows[number] for number in ids if number in rows):
        event = review.last_decision(tx.learnings.lineage(row.id)) if row.kind is Kind.AGENT_PLAYBOOK else None
        if event is not None:
            found.append(Decided(row, event, state_of(row)))
    return found


async def _refuse(
    visit: Visit,
    ids: Sequence[int],
    seen: review.Seen,
    error: Conflict | InvalidRequest,
    *,
    draft: Draft | None = None,
) -> Response:
    changes = await visit.store.read(lambda tx: _changes(tx, ids, seen)) if isinstance(error, Conflict) else ()
    number = _number(visit.asked("open")) or next(iter(ids), 0)
    status = 409 if isinstance(error, Conflict) else 422
    return await _show(visit, number, status=status, refusal=Refusal(str(error), changes), draft=draft)


def _changes(tx: Tx, ids: Sequence[int], seen: review.Seen) -> list[ChangedMeanwhile]:
    rows = tx.learnings.many(ids)
    found = []
    for row in (rows[number] for number in ids if number in rows):
        before = version_seen(row, tx.learnings.lineage(row.id), seen.get(row.id, ""))
        if before is not None and before != row:
            found.append(ChangedMeanwhile(row, changed_fields(before, row)))
    return found


def changed_fields(before: Learning, after: Learning) -> tuple[tuple[str, str, str], ...]:
    """The fields that differ, with their old and new texts."""
    names = (*WORDING, "scope", "review", "status")
    texts = ((name, str(getattr(before, name)), str(getattr(after, name))) for name in names)
    return tuple((name, old, new) for name, old, new in texts if old != new)


def _seen(form: Form) -> review.Seen:
    """The states that the page showed, from fields such as `12:3fa9`."""
    pairs = (text.partition(":") for text in form.getlist("seen"))
    return {number: state for text, _, state in pairs if (number := _number(text))}


def _decision(form: Form) -> PlaybookStatus:
    decision = DECISIONS.get(form.get("decision", ""))
    if decision is None:
        raise InvalidRequest(f"Choose a decision: {', '.join(DECISIONS)}.")
    return decision


def _draft(playbook: Learning) -> Draft:
    return {name: str(getattr(playbook, name)) for name in EDITED}


def _selection(visit: Visit) -> GetReviewQueueRequest:
    filters = _filters(visit)
    scope = filters["scope"] if filters["scope"] in list(Scope) else None
    values: dict[str, Any] = {
        "limit": LISTED,
        "agent_version": filters["version"] or None,
        "playbook_name": filters["type"] or None,
        "scope": scope,
        "cursor": filters["cursor"] or None,
    }
    return parse(GetReviewQueueRequest, values)


def _filters(visit: Visit) -> dict[str, str]:
    return {name: visit.asked(name) for name in FILTERS}


def _address(visit: Visit, number: int, **more: object) -> str:
    return "/review" + query({**_filters(visit), "playbook": number or "", **more})


def _next_address(visit: Visit, ids: Sequence[int]) -> str:
    """The queue after a decision: the playbook that comes next, and a notice that can take the decision back."""
    return _address(visit, _number(visit.asked("next")), done=",".join(map(str, ids[:MOST_DONE])))


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else 0
