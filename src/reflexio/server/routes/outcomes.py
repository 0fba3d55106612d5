"""What came of playbooks that an agent was shown."""

from fastapi import APIRouter, Request

from reflexio.learning import learnings
from reflexio.models.outcome import RecordOutcomeRequest
from reflexio.models.profile import UpdateResponse
from reflexio.server.body import JsonRoute
from reflexio.server.parts import store

router = APIRouter(prefix="/api", tags=["learnings"], route_class=JsonRoute)


@router.post("/record_outcome", response_model_exclude_none=True)
async def record_outcome(request: Request, told: RecordOutcomeRequest) -> UpdateResponse:
    """Counts that playbooks helped, hurt, or were learned once more; unknown ids are passed over."""
    return await learnings.record_outcome(store(request), told)
