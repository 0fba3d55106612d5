"""Review: a person decides about agent playbooks, with reviewer, time and reason recorded; decisions can be undone.

Approving a playbook that replaces others retires those in the same transaction. A retired playbook is kept with a
pointer to its successor, and not found any more.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from itertools import product
from typing import Any

from reflexio.errors import Conflict
from reflexio.interactions.redaction import redact_values
from reflexio.learning.wording_history import wording_history
from reflexio.models.learning import Kind, Learning, PlaybookStatus, Scope, Status
from reflexio.models.playbook import ReviewerRequest, UpdateAgentPlaybookRequest, UpdatePlaybookStatusRequest
from reflexio.models.profile import UpdateResponse
from reflexio.models.review import NAMED_REVIEWER, ReviewAgentPlaybooksRequest, ReviewResponse, UndoReviewRequest
from reflexio.ports.clock import Clock
from reflexio.ports.storage import NO_VECTORS, LearningFilter, LineageEvent, Store, TextVectors, Tx
from reflexio.retrieval.filters import get_one
from reflexio.retrieval.immediate import EmbedTexts, embed_later

REVIEWED, UNDONE = "reviewed", "undone"
DONE = {
    REVIEWED: "set it to {}",
    UNDONE: "took a decision back",
    "edited": "edited it",
    "superseded": "replaced it",
    "restored": "restored it",
    "archived": "archived it",
}
CHANGEABLE = ("name", "content", "trigger", "rationale", "scope")


Seen = Mapping[int, str]
"""The state in which a reviewer saw each playbook: a decision about another state than that is refused."""
NOT_SEEN: Seen = {}


@dataclasses.dataclass(frozen=True)
class ReviewDecision:
    """New wording or scope, a new status, or both."""

    wording: dict[str, Any]
    status: PlaybookStatus | None
    reviewer: "Reviewer"
    reason: str
    seen: Seen = dataclasses.field(default_factory=dict)
    vectors: TextVectors = NO_VECTORS


@dataclasses.dataclass(frozen=True)
class Reviewer:
    """Who is recorded as the reviewer, and another name that the caller gave, which is kept as a note only."""

    name: str
    named: str = ""

    @classmethod
    def of(cls, request: ReviewerRequest, owner: str) -> "Reviewer":
        """The owner of the caller's key. Without an owner, the name that the request gives."""
        return cls(owner, request.reviewer if request.reviewer != owner else "") if owner else cls(request.reviewer)

    @property
    def note(self) -> dict[str, str]:
        return {NAMED_REVIEWER: self.named} if self.named else {}


def state_of(playbook: Learning) -> str:
    """Another one after each decision and after each edit. Pages hand it back with a decision."""
    words = [getattr(playbook, name) for name in CHANGEABLE]
    state = (playbook.review.value, playbook.status.value, *map(str, words))
    return sha256("\0".join(state).encode("utf-8", "replace")).hexdigest()[:16]


def version_seen(playbook: Learning, events: Sequence[LineageEvent], state: str) -> Learning | None:
    """The playbook as it was in a state that `state_of` told; None when its lineage does not go back to it."""
    for version in wording_history(playbook, events):
        for review, status in product(PlaybookStatus, Status):
            earlier = dataclasses.replace(version.learning, review=review, status=status)
            if state_of(earlier) == state:
                return earlier
    return None


async def decide(
    store: Store, clock: Clock, request: UpdatePlaybookStatusRequest, *, owner: str = ""
) -> UpdateResponse:
    return await edit(store, clock, UpdateAgentPlaybookRequest.model_validate(request.model_dump()), owner=owner)


async def edit(
    store: Store,
    clock: Clock,
    request: UpdateAgentPlaybookRequest,
    *,
    owner: str = "",
    seen: Seen = NOT_SEEN,
    embed: EmbedTexts = embed_later,
) -> UpdateResponse:
    """Changes the wording, the decision, or both at once. `owner` is the owner of the caller's key. A new wording gets
    its vector first, so that the next search finds it by meaning.

    Raises Conflict when the playbook is not as it was `seen` any more, and tells who changed it.
    """
    now = clock.now()
    values = (request.playbook_name, request.content, request.trigger, request.rationale, request.scope)
    wording = {name: value for name, value in zip(CHANGEABLE, values, strict=True) if value is not None}
    texts = await redact_values(store, {**wording, "reason": request.reason})
    reason = texts.pop("reason")
    vectors = await _vectors_of_wording(store, request.agent_playbook_id, texts, embed)
    decision = ReviewDecision(texts, request.playbook_status, Reviewer.of(request, owner), reason, seen, vectors)
    await store.write(lambda tx: _change(tx, request.agent_playbook_id, decision, now))
    status = request.playbook_status
    return UpdateResponse(msg=f"The agent playbook is {status.value}" if status else "Updated")


async def _vectors_of_wording(store: Store, number: int, wording: Mapping[str, Any], embed: EmbedTexts) -> TextVectors:
    where = LearningFilter(Kind.AGENT_PLAYBOOK, ids=(number,))
    before = await store.read(lambda tx: get_one(tx, where))
    text = dataclasses.replace(before, **wording).text
    return NO_VECTORS if text == before.text else await embed([text])


async def decide_many(
    store: Store, clock: Clock, request: ReviewAgentPlaybooksRequest, *, owner: str = "", seen: Seen = NOT_SEEN
) -> ReviewResponse:
    """Decides about all of them or none. Raises Conflict when one is not as it was `seen` any more."""
    now, reviewer = clock.now(), Reviewer.of(request, owner)
    decision = ReviewDecision({}, request.playbook_status, reviewer, request.reason, seen)
    ids = list(dict.fromkeys(request.agent_playbook_ids))

    def change(tx: Tx) -> list[int]:
        return [retired for playbook_id in ids for retired in _change(tx, playbook_id, decision, now)]

    retired = await store.write(change)
    msg = f"{len(ids)} agent playbook(s) are {request.playbook_status.value}"
    return ReviewResponse(changed_count=len(ids), retired_ids=retired, msg=msg)


async def undo(
    store: Store, clock: Clock, request: UndoReviewRequest, *, owner: str = "", seen: Seen = NOT_SEEN
) -> ReviewResponse:
    """Takes the last decision about each back, all of them or none. Raises Conflict where there is none."""
    now, reviewer = clock.now(), Reviewer.of(request, owner)
    ids = list(dict.fromkeys(request.agent_playbook_ids))

    def change(tx: Tx) -> list[int]:
        return [back for each in ids for back in _undo(tx, each, reviewer, request.reason, now, seen)]

    restored = await store.write(change)
    return ReviewResponse(changed_count=len(ids), restored_ids=restored, msg=f"Took back {len(ids)} decision(s)")


def _change(tx: Tx, number: int, decision: ReviewDecision, now: int) -> list[int]:
    """Returns which others were retired."""
    before = get_one(tx, LearningFilter(Kind.AGENT_PLAYBOOK, ids=(number,)))
    if decision.status and before.status is Status.SUPERSEDED:
        successor = before.details.get("superseded_by")
        raise Conflict(f"The agent playbook {number} was replaced by {successor}; review that one.")
    _check_seen(tx, before, decision.seen)
    review = decision.status or before.review
    after = dataclasses.replace(before, **decision.wording, review=review, modified_at=now)
    tx.learnings.replace(after, decision.vectors)
    old_wording: dict[str, Any] = {name: getattr(before, name) for name in decision.wording}
    details = {"wording": old_wording, **decision.reviewer.note}
    event = LineageEvent(
        before.id, before.kind, "edited", now, decision.reviewer.name, decision.reason, details=details
    )
    if decision.wording:
        tx.learnings.note(event)
    if not decision.status:
        return []
    retired = _retire_replaced(tx, before, decision, now) if review is PlaybookStatus.APPROVED else []
    moved = dataclasses.replace(event, from_status=before.review.value, to_status=review.value)
    tx.learnings.note(dataclasses.replace(moved, op=REVIEWED, details={**details, "retired": retired}))
    return retired


def _check_seen(tx: Tx, playbook: Learning, seen: Seen) -> None:
    if seen.get(playbook.id, state_of(playbook)) == state_of(playbook):
        return
    event = next((event for event in reversed(tx.learnings.lineage(playbook.id)) if event.op in DONE), None)
    who = event.actor if event and event.actor else "Somebody"
    did = DONE[event.op].format(event.to_status or "changed") if event else "changed it"
    at = f" at {datetime.fromtimestamp(event.at, UTC):%H:%M} UTC" if event else ""
    reason = f" ({event.reason!r})" if event and event.reason else ""
    raise Conflict(
        f"{who} {did}{at}{reason}, after you had opened agent playbook {playbook.id}. Your decision was not stored."
    )


def _retire_replaced(tx: Tx, approved: Learning, decision: ReviewDecision, now: int) -> list[int]:
    """Retires what it replaces, as far as that is still current."""
    old = tx.learnings.many(approved.details.get("replaces", []))
    current = [row for row in old.values() if row.kind is approved.kind and row.status is Status.CURRENT]
    for row in current:
        retire(tx, row, approved.id, decision.reviewer.name, decision.reason, now)
    return [row.id for row in current]


def _undo(tx: Tx, number: int, reviewer: Reviewer, reason: str, now: int, seen: Seen) -> list[int]:
    """Returns which others were restored."""
    current = get_one(tx, LearningFilter(Kind.AGENT_PLAYBOOK, ids=(number,)))
    _check_seen(tx, current, seen)
    last = last_decision(tx.learnings.lineage(number))
    if last is None:
        raise Conflict(f"There is no decision about the agent playbook {number} to take back.")
    if current.status is not Status.CURRENT:
        raise Conflict(f"The agent playbook {number} was replaced by {current.details.get('superseded_by')} since.")
    review = PlaybookStatus(last.from_status)
    wording: dict[str, Any] = last.details.get("wording", {})
    if "scope" in wording:
        wording = {**wording, "scope": Scope(wording["scope"])}
    tx.learnings.replace(dataclasses.replace(current, **wording, review=review, modified_at=now))
    moved = (current.review.value, review.value)
    details = {"wording": {name: getattr(current, name) for name in wording}, **reviewer.note}
    event = LineageEvent(number, current.kind, UNDONE, now, reviewer.name, reason, *moved, details=details)
    tx.learnings.note(event)
    old = tx.learnings.many(last.details.get("retired", []))
    retired = [row for row in old.values() if row.details.get("superseded_by") == current.public_id]
    for row in retired:
        restore(tx, row, reviewer.name, reason, now)
    return [row.id for row in retired]


def last_decision(events: Sequence[LineageEvent]) -> LineageEvent | None:
    """The last decision that was not undone."""
    decisions: list[LineageEvent] = []
    for event in events:
        if event.op == REVIEWED:
            decisions.append(event)
        elif event.op == UNDONE and decisions:
            decisions.pop()
    return decisions[-1] if decisions else None


def retire(tx: Tx, old: Learning, successor: int, actor: str, reason: str, now: int) -> None:
    """Replaces a playbook by its successor."""
    details = {**old.details, "superseded_by": str(successor)}
    tx.learnings.replace(dataclasses.replace(old, status=Status.SUPERSEDED, details=details, modified_at=now))
    _note_status(tx, old, "superseded", actor, reason, now, Status.SUPERSEDED)


def restore(tx: Tx, old: Learning, actor: str, reason: str, now: int) -> None:
    """Makes a retired playbook current again."""
    details = {name: value for name, value in old.details.items() if name != "superseded_by"}
    tx.learnings.replace(dataclasses.replace(old, status=Status.CURRENT, details=details, modified_at=now))
    _note_status(tx, old, "restored", actor, reason, now, Status.CURRENT)


def _note_status(tx: Tx, old: Learning, op: str, actor: str, reason: str, now: int, to: Status) -> None:
    event = LineageEvent(old.id, old.kind, op, now, actor, reason, old.status.value, to.value)
    tx.learnings.note(event)
