"""One learning: its lineage as a picture, its versions, who decided what and why; edit, archive, delete, undo."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup
from pydantic import ValidationError
from starlette.responses import Response

from reflexio.aggregation import review
from reflexio.dashboard.lineage_picture import draw_lineage
from reflexio.dashboard.marking import LinkedQuote, mark_quotes
from reflexio.dashboard.pages.learnings import describe_validation
from reflexio.dashboard.rendering import MOST_COUNTED
from reflexio.dashboard.routing import Pages
from reflexio.dashboard.visit import Form, Visit
from reflexio.errors import Conflict, InvalidRequest, NotFound
from reflexio.learning import manual_edits
from reflexio.learning.history import describe
from reflexio.learning.lineage import MOST_SOURCES, Lineage, LineageSource, lineage
from reflexio.learning.wording_history import WordingVersion
from reflexio.models.access import KeyScope
from reflexio.models.interaction import Interaction
from reflexio.models.learning import Kind, Learning, PlaybookStatus, Scope, Status
from reflexio.models.playbook import UpdateAgentPlaybookRequest, UpdateUserPlaybookRequest
from reflexio.models.profile import UpdateUserProfileRequest
from reflexio.models.review import UndoReviewRequest
from reflexio.models.wire import NEVER_EXPIRES
from reflexio.ports.storage import LearningFilter, Tx
from reflexio.retrieval.filters import by_public_id

pages = Pages()

LONGEST_TURN, SHOWN_USES = 1_500, 8


@dataclass(frozen=True)
class ShownSource:
    """A source with the words of its turns, the quoted ones marked."""

    source: LineageSource
    turns: Sequence[tuple[int, str, Markup]]


@dataclass(frozen=True)
class ShownVersion:
    """A version of the wording, the one before it, and what made it."""

    version: WordingVersion
    before: Learning | None
    number: int


@pages.get("/learnings/{id}", KeyScope.READ)
async def show_learning(visit: Visit) -> Response:
    learning = await _find(visit)
    start = visit.asked_number("sources")
    seen = await lineage(visit.store, learning.kind, learning.public_id, start=start)
    decided = review.last_decision(seen.events)
    path = f"/learnings/{learning.id}"
    following = start + MOST_SOURCES
    reached, used_in = await _uses(visit, learning)
    return visit.page(
        "learning.html",
        learning=seen.learning,
        picture=draw_lineage(seen),
        sources=[_show_source(source, path) for source in seen.sources],
        seen=seen,
        versions=_versions(seen),
        history=[describe(event) for event in reversed(seen.events)],
        can_undo=decided is not None and seen.learning.status is not Status.SUPERSEDED,
        may_edit=visit.may(edit_scope(learning)),
        may_review=visit.may(KeyScope.REVIEW),
        state=review.state_of(seen.learning),
        reached=reached,
        used_in=used_in,
        never=NEVER_EXPIRES,
        earlier_sources=f"{path}?sources={max(0, start - MOST_SOURCES)}#sources" if start else "",
        later_sources=f"{path}?sources={following}#sources" if following < seen.source_count else "",
    )


@pages.get("/playbooks/{kind}/{id:path}", KeyScope.READ)
async def find_playbook(visit: Visit) -> Response:
    """Leads to the page of a learning that is named by kind and public id."""
    kind, public_id = visit.part("kind"), visit.part("id")
    if kind not in list(Kind):
        raise NotFound(what="kind of learning", id=kind[:50])
    where = by_public_id(Kind(kind), public_id)
    learning = await visit.store.read(lambda tx: tx.learnings.get(where))
    if learning is None:
        raise NotFound(what=kind.replace("_", " "), id=public_id[:100])
    return visit.go(f"/learnings/{learning.id}")


@pages.get("/learnings/{id}/edit", KeyScope.READ)
async def edit_form(visit: Visit) -> Response:
    learning = await _find(visit)
    visit.require(edit_scope(learning))
    return _edit_form(visit, learning, review.state_of(learning))


@pages.post("/learnings/{id}/edit", KeyScope.READ)
async def edit(visit: Visit) -> Response:
    """The form shows what is stored when something is wrong, so a key must be able to read as well."""
    learning, form = await _find(visit), await visit.form()
    visit.require(edit_scope(learning))
    try:
        await _store_edit(visit, learning, form)
    except ValidationError as error:
        return _edit_form(visit, learning, form.get("state", ""), form, describe_validation(error), 422)
    except Conflict as conflict:
        return _edit_form(visit, learning, review.state_of(learning), form, str(conflict), 409)
    return visit.go(f"/learnings/{learning.id}", "Saved.")


@pages.post("/learnings/{id}/archive", KeyScope.REVIEW)
async def archive(visit: Visit) -> Response:
    learning, form = await _find(visit), await visit.form()
    named = {"actor": visit.caller.owner, "reason": form.get("reason", "")}
    await manual_edits.archive(visit.store, visit.parts.clock, _exactly(learning), **named)
    return visit.go(f"/learnings/{learning.id}", "Archived. It reaches no prompt any more.")


@pages.post("/learnings/{id}/restore", KeyScope.REVIEW)
async def restore(visit: Visit) -> Response:
    learning, form = await _find(visit), await visit.form()
    named = {"actor": visit.caller.owner, "reason": form.get("reason", "")}
    await manual_edits.restore(visit.store, visit.parts.clock, _exactly(learning), **named)
    return visit.go(f"/learnings/{learning.id}", "It is in use again.")


@pages.post("/learnings/{id}/delete", KeyScope.REVIEW)
async def delete(visit: Visit) -> Response:
    learning = await _find(visit)
    await manual_edits.delete_one(visit.store, _exactly(learning))
    return visit.go(f"/learnings?kind={learning.kind.value}", "Deleted.")


@pages.post("/learnings/{id}/decide", KeyScope.REVIEW)
async def decide(visit: Visit) -> Response:
    """Approves, rejects or reopens an agent playbook as it was seen."""
    learning, form = await _find(visit), await visit.form()
    status = form.get("status", "")
    if learning.kind is not Kind.AGENT_PLAYBOOK or status not in list(PlaybookStatus):
        raise InvalidRequest("Only agent playbooks are approved or rejected.")
    request = UpdateAgentPlaybookRequest(
        agent_playbook_id=learning.id, playbook_status=PlaybookStatus(status), reason=form.get("reason", "")
    )
    seen = {learning.id: form.get("state", "")}
    await review.edit(visit.store, visit.parts.clock, request, owner=visit.caller.owner, seen=seen)
    words = {"approved": "Approved. It reaches prompts from now on.", "rejected": "Rejected. It reaches no prompt."}
    return visit.go(f"/learnings/{learning.id}", words.get(status, "It waits for review again."))


@pages.post("/learnings/{id}/undo", KeyScope.REVIEW)
async def undo(visit: Visit) -> Response:
    """Takes the last decision about an agent playbook back."""
    learning, form = await _find(visit), await visit.form()
    request = UndoReviewRequest(agent_playbook_ids=[learning.id], reason=form.get("reason", ""))
    seen = {learning.id: form.get("state", "")}
    await review.undo(visit.store, visit.parts.clock, request, owner=visit.caller.owner, seen=seen)
    return visit.go(f"/learnings/{learning.id}", "The last decision is taken back.")


async def _uses(visit: Visit, learning: Learning) -> tuple[int, list[Interaction]]:
    """In how many prompts it was, and the newest turns that had it."""

    def read(tx: Tx) -> tuple[int, list[Interaction]]:
        counts = tx.exposures.counts(learning.kind, [learning.public_id], MOST_COUNTED + 1)
        numbers = tx.exposures.newest(learning.kind, learning.public_id, SHOWN_USES)
        turns = tx.interactions.many(numbers)
        return counts.get(learning.public_id, 0), [turns[number] for number in numbers if number in turns]

    return await visit.store.read(read)


async def _find(visit: Visit) -> Learning:
    number = visit.number("id", "learning")
    found = await visit.store.read(lambda tx: tx.learnings.many([number]))
    if number not in found:
        raise NotFound(what="learning", id=number)
    return found[number]


def _exactly(learning: Learning) -> LearningFilter:
    return LearningFilter(learning.kind, ids=(learning.id,), statuses=None)


def edit_scope(learning: Learning) -> KeyScope:
    """What a key needs to change the wording, as in the API."""
    return KeyScope.REVIEW if learning.kind is Kind.AGENT_PLAYBOOK else KeyScope.PUBLISH


def _edit_form(
    visit: Visit, learning: Learning, state: str, form: Form | None = None, error: str = "", status: int = 200
) -> Response:
    stored = {
        "content": learning.content,
        "trigger": learning.trigger,
        "rationale": learning.rationale,
        "scope": learning.scope.value,
        "reason": "",
    }
    values = {name: form.get(name, text) if form else text for name, text in stored.items()}
    return visit.page("learning_edit.html", status=status, learning=learning, values=values, state=state, error=error)


async def _store_edit(visit: Visit, learning: Learning, form: Form) -> None:
    """Only what was changed in the form is changed, so that two people can edit different fields."""
    parts, owner = visit.parts, visit.caller.owner
    changed = {name: text for name in ("content", "trigger", "rationale") if (text := form.get(name)) is not None}
    changes = {name: text.strip() for name, text in changes_of(learning, changed).items()}
    scope = Scope(form["scope"]) if form.get("scope") in list(Scope) else None
    if form.get("state", "") != review.state_of(learning):
        raise Conflict("It was changed after you had opened it. Below is what you wrote; compare, and save again.")
    match learning.kind:
        case Kind.AGENT_PLAYBOOK:
            request = UpdateAgentPlaybookRequest(
                agent_playbook_id=learning.id, scope=scope, reason=form.get("reason", ""), **changes
            )
            seen = {learning.id: form.get("state", "")}
            await review.edit(visit.store, parts.clock, request, owner=owner, seen=seen)
        case Kind.USER_PLAYBOOK:
            checked = UpdateUserPlaybookRequest(user_playbook_id=learning.id, scope=scope, **changes)
            values = {"scope": checked.scope, **{name: getattr(checked, name) for name in changes}}
            edited = visit.store, parts.clock, parts.immediate_embedder, _exactly(learning), values
            await manual_edits.update(*edited, actor=owner, reason=form.get("reason", ""))
        case Kind.PROFILE:
            profile = UpdateUserProfileRequest(
                user_id=learning.user_id, profile_id=learning.key, content=changes.get("content"), scope=scope
            )
            await manual_edits.update_profile(visit.store, parts.clock, parts.immediate_embedder, profile, actor=owner)


def changes_of(learning: Learning, texts: dict[str, str]) -> dict[str, str]:
    """The texts that differ from what is stored."""
    return {name: text for name, text in texts.items() if text.strip() != getattr(learning, name).strip()}


def _show_source(source: LineageSource, path: str) -> ShownSource:
    quotes = [LinkedQuote(source.quote, f"{path}#sources", "Quoted by the learning")] if source.quote else []
    turns = [
        (turn.interaction_id, turn.role, mark_quotes(turn.content[:LONGEST_TURN], quotes)) for turn in source.cited
    ]
    return ShownSource(source, turns)


def _versions(seen: Lineage) -> list[ShownVersion]:
    """Newest first; each with the one before it."""
    before: list[Learning | None] = [*(version.learning for version in seen.versions[1:]), None]
    count = len(seen.versions)
    return [
        ShownVersion(version, old, count - place)
        for place, (version, old) in enumerate(zip(seen.versions, before, strict=True))
    ]
