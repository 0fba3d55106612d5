"""Evaluations of sessions on the wire. Nothing is evaluated yet: the list that earlier clients read is empty."""

from typing import Annotated, Any

from pydantic import Field

from reflexio.models.wire import NoticeResponse, TimeRangeRequest


class GetAgentSuccessEvaluationResultsRequest(TimeRangeRequest):
    """Selects results. All conditions apply."""

    limit: Annotated[int, Field(gt=0)] | None = 100
    agent_version: str | None = None


class GetAgentSuccessEvaluationResultsResponse(NoticeResponse):
    """Results; none yet."""

    agent_success_evaluation_results: list[dict[str, Any]] = []
