"""Review: a person decides about agent playbooks. Who, when and why are kept, and each decision can be taken back.

Approving one that would replace others retires those in the same transaction: there is no moment with both or none.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

from reflexio.errors import Conflict
from reflexio.learning.succession import restore, retire
from reflexio.models.learning import Kind, Learning
from reflexio.models.playbook import UpdateAgentPlaybookRequest, UpdatePlaybookStatusRequest
from reflexio.models.profile import UpdateResponse
from reflexio.models.review import ReviewAgentPlaybooksRequest, ReviewResponse, UndoReviewRequest
from reflexio.models.status import PlaybookStatus, Status
from reflexio.ports.clock import Clock
from reflexio.ports.storage import LearningFilter, LineageEvent, Store, Tx
from reflexio.usecases.learnings import one

REVIEWED, UNDONE = "reviewed", "undone"
CHANGEABLE = ("name", "content", "trigger", "rationale")


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What a person wants: another wording, a decision, or both."""

    wording: dict[str, Any]
    decision: PlaybookStatus | None
    reviewer: str
    reason: str


async def decide(store: Store, clock: Clock, asked: UpdatePlaybookStatusRequest) -> UpdateResponse:
    wanted = UpdateAgentPlaybookRequest.model_validate(asked.model_dump())
    return await edit(store, clock, wanted)


async def edit(store: Store, clock: Clock, asked: UpdateAgentPlaybookRequest) -> UpdateResponse:
    """Changes the wording, the decision, or both at once."""
    now = clock.now()
    texts = (asked.playbook_name, asked.content, asked.trigger, asked.rationale)
    wording = {name: text for name, text in zip(CHANGEABLE, texts, strict=True) if text is not None}
    verdict = Verdict(wording, asked.playbook_status, asked.reviewer, asked.reason)
    await store.write(lambda tx: _change(tx, asked.agent_playbook_id, verdict, now))
    decided = asked.playbook_status
    return UpdateResponse(msg=f"The agent playbook is {decided.value}" if decided else "Updated")


async def decide_many(store: Store, clock: Clock, asked: ReviewAgentPlaybooksRequest) -> ReviewResponse:
    """All of them or none."""
    now, verdict = clock.now(), Verdict({}, asked.playbook_status, asked.reviewer, asked.reason)
    ids = list(dict.fromkeys(asked.agent_playbook_ids))

    def change(tx: Tx) -> list[int]:
        return [retired for each in ids for retired in _change(tx, each, verdict, now)]

    retired = await store.write(change)
    msg = f"{len(ids)} agent playbook(s) are {asked.playbook_status.value}"
    return ReviewResponse(changed_count=len(ids), retired_ids=retired, msg=msg)


async def undo(store: Store, clock: Clock, asked: UndoReviewRequest) -> ReviewResponse:
    """Takes the last decision about each back, all of them or none. Raises Conflict where there is none."""
    now = clock.now()
    ids = list(dict.fromkeys(asked.agent_playbook_ids))

    def change(tx: Tx) -> list[int]:
        return [back for each in ids for back in _undo(tx, each, asked.reviewer, asked.reason, now)]

    restored = await store.write(change)
    return ReviewResponse(changed_count=len(ids), restored_ids=restored, msg=f"Took back {len(ids)} decision(s)")


def _change(tx: Tx, number: int, verdict: Verdict, now: int) -> list[int]:
    """Tells which others were retired."""
    before = one(tx, LearningFilter(Kind.AGENT_PLAYBOOK, ids=(number,)))
    if verdict.decision and before.status is Status.SUPERSEDED:
        heir = before.details.get("superseded_by")
        raise Conflict(f"The agent playbook {number} was replaced by {heir}; review that one.")
    review = verdict.decision or before.review
    tx.learnings.replace(dataclasses.replace(before, **verdict.wording, review=review, modified_at=now))
    event = LineageEvent(before.id, before.kind, "edited", now, actor=verdict.reviewer, reason=verdict.reason)
    if verdict.wording:
        tx.learnings.note(event)
    if not verdict.decision:
        return []
    retired = _retire(tx, before, verdict, now) if review is PlaybookStatus.APPROVED else []
    were: dict[str, Any] = {name: getattr(before, name) for name in verdict.wording}
    kept = {"wording": were, "retired": retired}
    moved = dataclasses.replace(event, from_status=before.review.value, to_status=review.value)
    tx.learnings.note(dataclasses.replace(moved, op=REVIEWED, details=kept))
    return retired


def _retire(tx: Tx, approved: Learning, verdict: Verdict, now: int) -> list[int]:
    """What it says that it replaces, as far as that still stands."""
    old = tx.learnings.many(approved.details.get("replaces", []))
    standing = [each for each in old.values() if each.kind is approved.kind and each.status is Status.CURRENT]
    for each in standing:
        retire(tx, each, approved.id, verdict.reviewer, verdict.reason, now)
    return [each.id for each in standing]


def _undo(tx: Tx, number: int, reviewer: str, reason: str, now: int) -> list[int]:
    """Tells which others stand again."""
    now_is = one(tx, LearningFilter(Kind.AGENT_PLAYBOOK, ids=(number,)))
    last = last_decision(tx.learnings.lineage(number))
    if last is None:
        raise Conflict(f"There is no decision about the agent playbook {number} to take back.")
    if now_is.status is not Status.CURRENT:
        raise Conflict(f"The agent playbook {number} was replaced by {now_is.details.get('superseded_by')} since.")
    review = PlaybookStatus(last.from_status)
    wording: dict[str, Any] = last.details.get("wording", {})
    tx.learnings.replace(dataclasses.replace(now_is, **wording, review=review, modified_at=now))
    moved = (now_is.review.value, review.value)
    tx.learnings.note(LineageEvent(number, now_is.kind, UNDONE, now, reviewer, reason, *moved))
    old = tx.learnings.many(last.details.get("retired", []))
    back = [each for each in old.values() if each.details.get("superseded_by") == now_is.public_id]
    for each in back:
        restore(tx, each, reviewer, reason, now)
    return [each.id for each in back]


def last_decision(events: Sequence[LineageEvent]) -> LineageEvent | None:
    """The last one that was not taken back."""
    standing: list[LineageEvent] = []
    for event in events:
        if event.op == REVIEWED:
            standing.append(event)
        elif event.op == UNDONE and standing:
            standing.pop()
    return standing[-1] if standing else None
