"""Aggregating user playbooks."""

from fastapi import APIRouter, Request

from reflexio.errors import Conflict
from reflexio.models.aggregation import RunPlaybookAggregationRequest, RunPlaybookAggregationResponse
from reflexio.server.body import JsonRoute
from reflexio.server.parts import house, store

router = APIRouter(prefix="/api", tags=["operations"], route_class=JsonRoute)
PATIENCE = 3.0
"""Seconds that a caller who does not wait is kept: most runs without a slow model are over by then."""


@router.post("/run_playbook_aggregation", response_model_exclude_none=True)
async def run_playbook_aggregation(
    request: Request, asked: RunPlaybookAggregationRequest, wait_for_response: bool = True
) -> RunPlaybookAggregationResponse:
    """Makes pending agent playbooks of what many users taught one agent version, whatever the trigger count.

    Only clusters that changed since the last time reach the learner. Answers at the end; with
    `wait_for_response=false` after three seconds at the latest, with what is known by then. `success` is false while
    another one is in progress, and when it failed.
    """
    here, runs = store(request), house(request).aggregation
    params = asked.model_dump(mode="json", exclude_none=True)
    try:
        run = await runs.begin(here, asked.agent_version, asked.type_among, params)
    except Conflict as refused:
        return RunPlaybookAggregationResponse(success=False, message=str(refused))
    seen = await runs.wait(here, run, None if wait_for_response else PATIENCE)
    return RunPlaybookAggregationResponse.of(seen, run.operation_id)
