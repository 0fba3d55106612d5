"""Plays the reviewers of the demo: each pending agent playbook is approved, reworded or rejected, with a reason."""

from reflexio.aggregation import review
from reflexio.aggregation.review_queue import review_queue
from reflexio.cli.demo_shop.conversations import REVIEW
from reflexio.models.learning import PlaybookStatus
from reflexio.models.playbook import UpdateAgentPlaybookRequest
from reflexio.models.review import GetReviewQueueRequest, ReviewItem
from reflexio.ports.clock import Clock
from reflexio.ports.storage import Store

MOST = 100


async def review_pending(store: Store, clock: Clock, embedder: str, earlier: int) -> int:
    """Decides about all that wait; `earlier` is how many decisions were made before. Returns how many there were."""
    queue = await review_queue(store, embedder, GetReviewQueueRequest(limit=MOST))
    for number, item in enumerate(reversed(queue.items)):
        await review.edit(store, clock, decision(item, earlier + number))
    return len(queue.items)


def decision(item: ReviewItem, number: int) -> UpdateAgentPlaybookRequest:
    playbook = item.agent_playbook
    reviewers, reasons = REVIEW["reviewers"], REVIEW["approved"]
    request = UpdateAgentPlaybookRequest(
        agent_playbook_id=playbook.agent_playbook_id,
        playbook_status=PlaybookStatus.APPROVED,
        reviewer=reviewers[number % len(reviewers)],
        reason=reasons[number % len(reasons)],
    )
    reasons_against = [
        rejection["reason"] for rejection in REVIEW["rejections"] if rejection["word"] in playbook.content
    ]
    if item.support < 2:
        reasons_against.append(REVIEW["doubted"])
    if reasons_against:
        rejected = {"playbook_status": PlaybookStatus.REJECTED, "reason": reasons_against[0]}
        return request.model_copy(update=rejected)
    for wording in REVIEW["wordings"]:
        if wording["word"] in playbook.content and wording["content"] != playbook.content:
            return request.model_copy(update={"trigger": wording["trigger"], "content": wording["content"]})
    return request
