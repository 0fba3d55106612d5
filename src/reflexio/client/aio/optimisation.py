"""The search for better wording of a playbook."""

from reflexio.client.aio.calls import Calls
from reflexio.client.answers import build
from reflexio.models.optimisation import (
    CancelPlaybookOptimizationRequest,
    CancelPlaybookOptimizationResponse,
    GetPlaybookOptimizationResponse,
    GetPlaybookOptimizationsResponse,
    RunPlaybookOptimizationRequest,
    RunPlaybookOptimizationResponse,
)

LOOK_EVERY = 0.25
"""Seconds between two looks at a job that somebody waits for."""


class OptimisationCalls(Calls):
    """Optimisation."""

    async def run_playbook_optimization(
        self,
        agent_playbook_id: int | None = None,
        dry_run: bool = False,
        wait_for_response: bool = False,
        *,
        user_playbook_id: int | None = None,
        seed: int | None = None,
    ) -> RunPlaybookOptimizationResponse:
        """Searches for better wording of a pending agent playbook, against the real assistant.

        A better one takes the place of the old one and stays pending. `dry_run` begins nothing and tells how many
        calls a run can cost at most. `wait_for_response` waits for the end.
        """
        asked = build(
            RunPlaybookOptimizationRequest,
            {
                "agent_playbook_id": agent_playbook_id,
                "user_playbook_id": user_playbook_id,
                "dry_run": dry_run,
                "seed": seed,
            },
        )
        path = "/api/run_playbook_optimization"
        begun = await self._call("POST", path, RunPlaybookOptimizationResponse, asked, repeatable=False)
        if not wait_for_response or begun.job_id is None:
            return begun
        job = (await self.get_playbook_optimization(begun.job_id, details=False)).job
        while not job.has_ended:
            await self._sleep(LOOK_EVERY)
            job = (await self.get_playbook_optimization(begun.job_id, details=False)).job
        self._cache.forget("agent_playbooks", "user_playbooks")
        done = job.status == "completed"
        return begun.model_copy(update={"success": done, "msg": job.decision_reason, "status": job.status, "job": job})

    async def get_playbook_optimizations(
        self, limit: int = 100, *, cursor: str | None = None
    ) -> GetPlaybookOptimizationsResponse:
        """Jobs, newest first."""
        params = {"limit": limit, "cursor": cursor}
        return await self._call(
            "GET", "/api/get_playbook_optimizations", GetPlaybookOptimizationsResponse, params=params
        )

    async def get_playbook_optimization(self, job_id: int, *, details: bool = True) -> GetPlaybookOptimizationResponse:
        """One job with all wordings it tried, how each did in each window, and what happened."""
        params = {"job_id": job_id, "details": details}
        return await self._call("GET", "/api/get_playbook_optimization", GetPlaybookOptimizationResponse, params=params)

    async def cancel_playbook_optimization(self, job_id: int) -> CancelPlaybookOptimizationResponse:
        """Stops a job: it is skipped, and nothing is changed. `success` is false when it had ended before."""
        which = build(CancelPlaybookOptimizationRequest, {"job_id": job_id})
        path = "/api/cancel_playbook_optimization"
        return await self._call("POST", path, CancelPlaybookOptimizationResponse, which, repeatable=False)
