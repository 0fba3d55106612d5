"""Review: what waits for a person, and what that person decides."""

from fastapi import APIRouter, Request

from reflexio.aggregation import review, review_queue
from reflexio.models.review import (
    GetReviewQueueRequest,
    GetReviewQueueResponse,
    ReviewAgentPlaybooksRequest,
    ReviewResponse,
    UndoReviewRequest,
)
from reflexio.server.body import JsonRoute
from reflexio.server.parts import house, store

router = APIRouter(prefix="/api", tags=["review"], route_class=JsonRoute)


@router.post("/get_review_queue", response_model_exclude_none=True)
async def get_review_queue(request: Request, asked: GetReviewQueueRequest) -> GetReviewQueueResponse:
    """Agent playbooks that wait for a decision, newest first, with evidence, support, disagreement and difference.

    With `agent_playbook_id` that one, whatever was decided about it; a 404 when there is none.
    """
    return await review_queue.review_queue(store(request), house(request).embedder.name, asked)


@router.post("/review_agent_playbooks", response_model_exclude_none=True)
async def review_agent_playbooks(request: Request, asked: ReviewAgentPlaybooksRequest) -> ReviewResponse:
    """Approves, rejects or reopens several agent playbooks, all of them or none. Who, when and why are kept.

    Approving one retires those that it says it replaces. A 404 for an unknown one, a 409 for one that was replaced.
    """
    return await review.decide_many(store(request), house(request).clock, asked)


@router.post("/undo_review", response_model_exclude_none=True)
async def undo_review(request: Request, asked: UndoReviewRequest) -> ReviewResponse:
    """Takes the last decision about each playbook back, with the edit that came with it; what it had retired stands
    again. All of them or none: a 409 where there is no decision to take back."""
    return await review.undo(store(request), house(request).clock, asked)
