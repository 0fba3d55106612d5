"""The search for better wording of a playbook."""

from typing import Annotated

from fastapi import APIRouter, Query, Request

from reflexio.models.optimisation import (
    CancelPlaybookOptimizationRequest,
    CancelPlaybookOptimizationResponse,
    GetPlaybookOptimizationResponse,
    GetPlaybookOptimizationsResponse,
    RunPlaybookOptimizationRequest,
    RunPlaybookOptimizationResponse,
)
from reflexio.models.paging import Cursor
from reflexio.models.shape import RowId
from reflexio.server.body import JsonRoute
from reflexio.server.parts import house, store

router = APIRouter(prefix="/api", tags=["optimisation"], route_class=JsonRoute)


@router.post("/run_playbook_optimization", response_model_exclude_none=True)
async def run_playbook_optimization(
    request: Request, asked: RunPlaybookOptimizationRequest
) -> RunPlaybookOptimizationResponse:
    """Begins a search for better wording of a pending agent playbook, or of a user playbook.

    Answers at once with the job; while one of this playbook is under way, with that one. `success` is false and the
    status `skipped` when something stands in the way, which `msg` names. A `dry_run` begins nothing.
    """
    return await house(request).optimisation.run(store(request), asked)


@router.get("/get_playbook_optimizations", response_model_exclude_none=True)
async def get_playbook_optimizations(
    request: Request, limit: Annotated[int, Query(ge=1, le=1000)] = 100, cursor: Cursor | None = None
) -> GetPlaybookOptimizationsResponse:
    """Jobs, newest first. The newest 500 that have ended are kept."""
    return await house(request).optimisation.list_jobs(store(request), limit, cursor)


@router.get("/get_playbook_optimization", response_model_exclude_none=True)
async def get_playbook_optimization(
    request: Request, job_id: RowId, details: bool = True
) -> GetPlaybookOptimizationResponse:
    """One job with all wordings it tried, how each did in each window, and what happened; a 404 when there is none."""
    return await house(request).optimisation.show_job(store(request), job_id, details=details)


@router.post("/cancel_playbook_optimization", response_model_exclude_none=True)
async def cancel_playbook_optimization(
    request: Request, which: CancelPlaybookOptimizationRequest
) -> CancelPlaybookOptimizationResponse:
    """Stops a job: it is skipped, and nothing is changed. `success` is false when it had ended before."""
    job, stopped = await house(request).optimisation.cancel(store(request), which.job_id)
    msg = job.decision_reason if stopped else f"The job had ended before: {job.status}"
    return CancelPlaybookOptimizationResponse(success=stopped, msg=msg, job=job)
