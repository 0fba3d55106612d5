"""Review: a person decides about an agent playbook. Who, when and why are kept."""

import dataclasses
from typing import Any

from reflexio.models.learning import Kind
from reflexio.models.playbook import UpdateAgentPlaybookRequest, UpdatePlaybookStatusRequest
from reflexio.models.profile import UpdateResponse
from reflexio.ports.clock import Clock
from reflexio.ports.storage import LearningFilter, LineageEvent, Store, Tx
from reflexio.usecases.learnings import one


async def decide(store: Store, clock: Clock, asked: UpdatePlaybookStatusRequest) -> UpdateResponse:
    wanted = UpdateAgentPlaybookRequest.model_validate(asked.model_dump())
    return await edit(store, clock, wanted)


async def edit(store: Store, clock: Clock, asked: UpdateAgentPlaybookRequest) -> UpdateResponse:
    """Changes the wording, the decision, or both at once."""
    now = clock.now()
    texts = {
        "name": asked.playbook_name,
        "content": asked.content,
        "trigger": asked.trigger,
        "rationale": asked.rationale,
    }
    changes: dict[str, Any] = {name: value for name, value in texts.items() if value is not None}

    def change(tx: Tx) -> UpdateResponse:
        before = one(tx, LearningFilter(Kind.AGENT_PLAYBOOK, ids=(asked.agent_playbook_id,)))
        review = asked.playbook_status or before.review
        tx.learnings.replace(dataclasses.replace(before, **changes, review=review, modified_at=now))
        event = LineageEvent(before.id, before.kind, "edited", now, actor=asked.reviewer, reason=asked.reason)
        if changes:
            tx.learnings.note(event)
        if asked.playbook_status:
            tx.learnings.note(
                dataclasses.replace(event, op="reviewed", from_status=before.review.value, to_status=review.value)
            )
        return UpdateResponse(msg=f"The agent playbook is {review.value}" if asked.playbook_status else "Updated")

    return await store.write(change)
