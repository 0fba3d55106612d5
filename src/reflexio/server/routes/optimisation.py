"""Optimisation: the search for better wording of a playbook."""

from typing import Annotated

from fastapi import Query, Request

from reflexio.models.access import KeyScope
from reflexio.models.optimisation import (
    CancelPlaybookOptimizationRequest,
    CancelPlaybookOptimizationResponse,
    GetPlaybookOptimizationResponse,
    GetPlaybookOptimizationsResponse,
    RunPlaybookOptimizationRequest,
    RunPlaybookOptimizationResponse,
)
from reflexio.models.paging import Cursor
from reflexio.models.wire import RowId
from reflexio.server.direct import Router
from reflexio.server.routes import get_reflexio, get_store
from reflexio.server.scopes import needs

router = Router(prefix="/api", tag="optimisation")


@router.direct("POST", "/run_playbook_optimization", KeyScope.REVIEW)
async def run_playbook_optimization(
    request: Request, body: RunPlaybookOptimizationRequest
) -> RunPlaybookOptimizationResponse:
    """Starts a search for better wording of a pending agent playbook, or of a user playbook.

    The response is immediate and names the job; while a job of this playbook runs, that one. `success` is false and
    the status `skipped` when the search cannot start; `msg` says why. A `dry_run` starts nothing.
    """
    return await get_reflexio(request).optimisation.run(get_store(request), body)


@router.get("/get_playbook_optimizations", response_model_exclude_none=True, openapi_extra=needs(KeyScope.READ))
async def get_playbook_optimizations(
    request: Request, limit: Annotated[int, Query(ge=1, le=1000)] = 100, cursor: Cursor | None = None
) -> GetPlaybookOptimizationsResponse:
    """Jobs, newest first. The newest 500 ended jobs are kept."""
    return await get_reflexio(request).optimisation.list_jobs(get_store(request), limit, cursor)


@router.get("/get_playbook_optimization", response_model_exclude_none=True, openapi_extra=needs(KeyScope.READ))
async def get_playbook_optimization(
    request: Request, job_id: RowId, details: bool = True
) -> GetPlaybookOptimizationResponse:
    """One job with all candidate wordings, their evaluation in each window, and its events. A 404 for an unknown id."""
    return await get_reflexio(request).optimisation.show_job(get_store(request), job_id, details=details)


@router.direct("POST", "/cancel_playbook_optimization", KeyScope.REVIEW)
async def cancel_playbook_optimization(
    request: Request, body: CancelPlaybookOptimizationRequest
) -> CancelPlaybookOptimizationResponse:
    """Stops a job. Its status becomes `skipped`; no playbook changes. `success` is false for an ended job."""
    job, stopped = await get_reflexio(request).optimisation.cancel(get_store(request), body.job_id)
    msg = job.decision_reason if stopped else f"The job had ended before: {job.status}"
    return CancelPlaybookOptimizationResponse(success=stopped, msg=msg, job=job)
