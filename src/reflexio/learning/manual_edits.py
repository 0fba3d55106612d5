"""Profiles and playbooks by hand: add, list, edit, delete, and count the outcomes of playbooks."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from reflexio.errors import Conflict, InvalidRequest
from reflexio.interactions.redaction import redact_learnings, redact_values
from reflexio.learning.wording_history import WORDING
from reflexio.models.interaction import BulkDeleteResponse, DeleteResponse
from reflexio.models.learning import Kind, Learning, Scope, Status
from reflexio.models.paging import MOST, Listing, page
from reflexio.models.playbook import RecordOutcomeRequest
from reflexio.models.profile import (
    AddResponse,
    DeleteUserProfileRequest,
    ProfileStatisticsResponse,
    UpdateResponse,
    UpdateUserProfileRequest,
)
from reflexio.ports.clock import Clock
from reflexio.ports.storage import NO_VECTORS, LearningFilter, LineageEvent, Store, Tx
from reflexio.retrieval.filters import LABELS, get_one
from reflexio.retrieval.immediate import ImmediateEmbedder
from reflexio.retrieval.scope import ScopeClassifier, scopes_without_vectors

EXPIRING_SOON = 7 * 86_400
IN_USE = (Status.CURRENT, Status.PENDING)


async def add(
    store: Store,
    classifier: ScopeClassifier,
    embedder: ImmediateEmbedder,
    new: Sequence[Learning],
    scopes: Sequence[Scope | None],
) -> AddResponse:
    """Stores learnings. Where `scopes` has None for one, the classifier decides.

    A few are found by meaning in the next call; the response counts those that wait for their vector.
    """
    new, redacted = await redact_learnings(store, new)
    vectors = await embedder.embed([learning.text for learning in new])
    undecided = [learning for learning, scope in zip(new, scopes, strict=True) if scope is None]
    # Without vectors there is nothing to compare with the prototypes, and nobody waits a second time.
    decide = classifier.decide_in_time if vectors.of else scopes_without_vectors
    decided = iter(await decide(undecided))
    pairs = zip(new, scopes, strict=True)
    new = [learning if scope else dataclasses.replace(learning, scope=next(decided)) for learning, scope in pairs]
    ids = await store.write(lambda tx: tx.learnings.add(new, vectors))
    public = [dataclasses.replace(learning, id=number).public_id for learning, number in zip(new, ids, strict=True)]
    waiting = sum(learning.text not in vectors.of for learning in new)
    message = f"Added {len(ids)} {LABELS[new[0].kind]}(s)"
    if waiting:
        message += f"; {waiting} found by meaning once embedded in the background"
    return AddResponse(added_count=len(ids), message=message, ids=public, unembedded_count=waiting, redacted=redacted)


async def list_learnings(
    store: Store, where: LearningFilter, limit: int | None, cursor: str | None
) -> Listing[Learning]:
    wanted_page = page(limit or MOST, cursor)
    return await store.read(lambda tx: tx.learnings.page(where, wanted_page))


Change = Callable[[Learning], Learning]


async def update(
    store: Store,
    clock: Clock,
    embedder: ImmediateEmbedder,
    where: LearningFilter,
    changes: dict[str, Any],
    *,
    actor: str = "",
    reason: str = "",
) -> UpdateResponse:
    """Changes the named fields; None leaves a field as it is. `actor` is who edits, by the owner of the key."""
    changed = {name: value for name, value in changes.items() if value is not None}
    values = await redact_values(store, {**changed, "reason": reason})
    noted = LineageEvent(0, where.kind, "edited", clock.now(), actor, values.pop("reason"))
    return await _edit(store, noted, embedder, where, lambda before: dataclasses.replace(before, **values))


async def update_profile(
    store: Store, clock: Clock, embedder: ImmediateEmbedder, request: UpdateUserProfileRequest, *, actor: str = ""
) -> UpdateResponse:
    now = clock.now()
    values = await redact_values(store, {"content": request.content, "custom_features": request.custom_features})

    def change(before: Learning) -> Learning:
        details = before.details
        if values["custom_features"] is not None:
            details = {**details, "custom_features": values["custom_features"]}
        return dataclasses.replace(
            before,
            content=values["content"] or before.content,
            scope=request.scope or before.scope,
            details=details,
            # Profiles are listed by the time at which they were last confirmed.
            created_at=now,
        )

    # An expired profile is gone: an edit does not bring it back.
    alive = LearningFilter(Kind.PROFILE, keys=(request.profile_id,), user_id=request.user_id, alive_at=now)
    return await _edit(store, LineageEvent(0, Kind.PROFILE, "edited", now, actor), embedder, alive, change)


async def _edit(
    store: Store, event: LineageEvent, embedder: ImmediateEmbedder, where: LearningFilter, change: Change
) -> UpdateResponse:
    """Changes one row. A new text gets its vector first, so that the next search finds it by meaning.

    `event` says who edits, when and why.
    """
    seen = await store.read(lambda tx: get_one(tx, where))
    text = change(seen).text
    vectors = await embedder.embed([text]) if text != seen.text else NO_VECTORS

    def write(tx: Tx) -> UpdateResponse:
        before = get_one(tx, where)
        after = change(before)
        if after == before:
            return UpdateResponse(msg="Nothing to change")
        tx.learnings.replace(dataclasses.replace(after, modified_at=event.at), vectors)
        old_wording = {name: getattr(before, name) for name in WORDING if getattr(before, name) != getattr(after, name)}
        tx.learnings.note(dataclasses.replace(event, learning_id=before.id, details={"wording": old_wording}))
        return UpdateResponse(msg="Updated")

    return await store.write(write)


async def archive(
    store: Store, clock: Clock, where: LearningFilter, *, actor: str = "", reason: str = ""
) -> UpdateResponse:
    """Takes a learning out of searches and prompts, but keeps it. Raises Conflict when it is not in use."""
    return await _move(
        store, where, IN_USE, Status.ARCHIVED, LineageEvent(0, where.kind, "archived", clock.now(), actor, reason)
    )


async def restore(
    store: Store, clock: Clock, where: LearningFilter, *, actor: str = "", reason: str = ""
) -> UpdateResponse:
    """Takes an archived learning back into use. Raises Conflict when it is not archived."""
    return await _move(
        store,
        where,
        (Status.ARCHIVED,),
        Status.CURRENT,
        LineageEvent(0, where.kind, "restored", clock.now(), actor, reason),
    )


async def _move(
    store: Store, where: LearningFilter, allowed: Sequence[Status], to: Status, event: LineageEvent
) -> UpdateResponse:
    reason = (await redact_values(store, {"reason": event.reason}))["reason"]

    def write(tx: Tx) -> UpdateResponse:
        before = get_one(tx, where)
        if before.status not in allowed:
            raise Conflict(
                f"The {LABELS[where.kind]} {before.public_id!r} is {before.status.value}, not {allowed[0].value}."
            )
        tx.learnings.replace(dataclasses.replace(before, status=to, modified_at=event.at))
        moved = dataclasses.replace(event, learning_id=before.id, reason=reason)
        tx.learnings.note(dataclasses.replace(moved, from_status=before.status.value, to_status=to.value))
        return UpdateResponse(msg=f"The {LABELS[where.kind]} is {to.value}")

    return await store.write(write)


async def delete_one(store: Store, where: LearningFilter) -> DeleteResponse:
    def delete(tx: Tx) -> DeleteResponse:
        get_one(tx, where)
        tx.learnings.remove(dataclasses.replace(where, statuses=None))
        return DeleteResponse(message="Deleted")

    return await store.write(delete)


async def delete_profiles(store: Store, request: DeleteUserProfileRequest) -> DeleteResponse:
    """Deletes one profile by id, or those of the user that contain a text."""
    if request.profile_id:
        return await delete_one(
            store, LearningFilter(Kind.PROFILE, keys=(request.profile_id,), user_id=request.user_id)
        )
    if not request.search_query.strip():
        raise InvalidRequest("Give profile_id or search_query; delete_all_profiles deletes all.")
    where = LearningFilter(Kind.PROFILE, user_id=request.user_id, contains=request.search_query.strip())
    count = await _remove(store, where)
    return DeleteResponse(message=f"Deleted {count} profile(s)")


async def delete_many(store: Store, *filters: LearningFilter) -> BulkDeleteResponse:
    count = sum([await _remove(store, dataclasses.replace(where, statuses=None)) for where in filters])
    return BulkDeleteResponse(deleted_count=count, message=f"Deleted {count} row(s)")


async def _remove(store: Store, where: LearningFilter) -> int:
    """Removes a few rows at a time: other writes are made in between."""
    total = 0
    while removed := await store.write(lambda tx: tx.learnings.remove_some(where)):
        total += removed
    return total


async def profile_statistics(store: Store, clock: Clock) -> ProfileStatisticsResponse:
    now = clock.now()

    def read(tx: Tx) -> ProfileStatisticsResponse:
        def count(status: Status, alive_at: int) -> int:
            return tx.learnings.count(LearningFilter(Kind.PROFILE, statuses=(status,), alive_at=alive_at))

        current = count(Status.CURRENT, now)
        return ProfileStatisticsResponse(
            current_count=current,
            pending_count=count(Status.PENDING, now),
            archived_count=count(Status.ARCHIVED, now),
            expiring_soon_count=current - count(Status.CURRENT, now + EXPIRING_SOON),
        )

    return await store.read(read)


async def record_outcome(store: Store, request: RecordOutcomeRequest) -> UpdateResponse:
    """Counts an outcome on the playbooks themselves, in one transaction, so that no count is lost.

    Unknown ids are ignored.
    """
    kinds = dict.fromkeys(request.user_playbook_ids, Kind.USER_PLAYBOOK)
    kinds |= dict.fromkeys(request.agent_playbook_ids, Kind.AGENT_PLAYBOOK)

    def count(tx: Tx) -> int:
        rows = tx.learnings.many(list(kinds)).values()
        playbooks = [row for row in rows if row.kind is kinds[row.id]]
        for playbook in playbooks:
            outcomes = playbook.details.get("outcomes", {})
            outcomes = {**outcomes, request.outcome: outcomes.get(request.outcome, 0) + 1}
            tx.learnings.replace(dataclasses.replace(playbook, details={**playbook.details, "outcomes": outcomes}))
        return len(playbooks)

    return UpdateResponse(msg=f"Counted {await store.write(count)} playbook(s)")
