"""Evaluations of sessions."""

from fastapi import Request

from reflexio.models.access import KeyScope
from reflexio.models.evaluation import (
    GetAgentSuccessEvaluationResultsRequest,
    GetAgentSuccessEvaluationResultsResponse,
)
from reflexio.server.direct import Router

router = Router(prefix="/api", tag="evaluation")


@router.direct("POST", "/get_agent_success_evaluation_results", KeyScope.READ)
async def get_agent_success_evaluation_results(
    request: Request, body: GetAgentSuccessEvaluationResultsRequest
) -> GetAgentSuccessEvaluationResultsResponse:
    """Results of evaluated sessions. The list is empty: this server does not evaluate sessions yet."""
    return GetAgentSuccessEvaluationResultsResponse(msg="No session is evaluated yet")
