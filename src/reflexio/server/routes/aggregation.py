"""Aggregation of user playbooks into agent playbooks, and their review by a person."""

from fastapi import Request

from reflexio.aggregation import review, review_queue
from reflexio.errors import Conflict
from reflexio.models.access import KeyScope
from reflexio.models.review import (
    GetReviewQueueRequest,
    GetReviewQueueResponse,
    ReviewAgentPlaybooksRequest,
    ReviewResponse,
    RunPlaybookAggregationRequest,
    RunPlaybookAggregationResponse,
    UndoReviewRequest,
)
from reflexio.server.direct import Router
from reflexio.server.routes import get_reflexio, get_store
from reflexio.server.scopes import get_caller, needs

router = Router(prefix="/api", tag="operations")
review_router = Router(prefix="/api", tag="review")
NO_WAIT_SECONDS = 3.0
"""How long a call without `wait_for_response` still waits: most runs without a slow model end within it."""


@router.post("/run_playbook_aggregation", response_model_exclude_none=True, openapi_extra=needs(KeyScope.REVIEW))
async def run_playbook_aggregation(
    request: Request, body: RunPlaybookAggregationRequest, wait_for_response: bool = True
) -> RunPlaybookAggregationResponse:
    """Summarises the user playbooks of one agent version into pending agent playbooks, whatever the trigger count.

    Only clusters that changed since the last run reach the learner. The response comes at the end; with
    `wait_for_response=false` after three seconds at the latest, with the progress so far. `success` is false while
    another run is in progress, and when the run failed.
    """
    mine, runs = get_store(request), get_reflexio(request).aggregation
    params = body.model_dump(mode="json", exclude_none=True)
    try:
        run = await runs.begin(mine, body.agent_version, body.type_among, params)
    except Conflict as error:
        return RunPlaybookAggregationResponse(success=False, message=str(error))
    operation = await runs.wait(mine, run, None if wait_for_response else NO_WAIT_SECONDS)
    return RunPlaybookAggregationResponse.of(operation, run.operation_id)


@review_router.direct("POST", "/get_review_queue", KeyScope.READ)
async def get_review_queue(request: Request, body: GetReviewQueueRequest) -> GetReviewQueueResponse:
    """Agent playbooks that wait for a decision, newest first, with evidence, support, disagreement and difference.

    With `agent_playbook_id`: that playbook, whatever was decided about it; a 404 for an unknown id.
    """
    return await review_queue.review_queue(get_store(request), get_reflexio(request).embedder.name, body)


@review_router.direct("POST", "/review_agent_playbooks", KeyScope.REVIEW)
async def review_agent_playbooks(request: Request, body: ReviewAgentPlaybooksRequest) -> ReviewResponse:
    """Approves, rejects or reopens several agent playbooks, all or none. Reviewer, time and reason are recorded.

    Approving a playbook retires those that it replaces. A 404 for an unknown id, a 409 for a replaced playbook.
    """
    return await review.decide_many(
        get_store(request), get_reflexio(request).clock, body, owner=get_caller(request).owner
    )


@review_router.direct("POST", "/undo_review", KeyScope.REVIEW)
async def undo_review(request: Request, body: UndoReviewRequest) -> ReviewResponse:
    """Takes back the last decision about each playbook and the edit that came with it, all or none.

    Playbooks that the decision had retired are restored. A 409 for a playbook without a decision.
    """
    return await review.undo(get_store(request), get_reflexio(request).clock, body, owner=get_caller(request).owner)
