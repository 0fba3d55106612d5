"""What goes on around learning: runs on demand, generations that change places, long operations, and settings."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from datetime import datetime
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

import httpx

from reflexio import errors
from reflexio.client import responses
from reflexio.client.aio.connection import CONNECT_SECONDS, LEARNING_SECONDS, Connection
from reflexio.client.cache import AGENT_PLAYBOOKS, PROFILES
from reflexio.client.requests import build_request
from reflexio.models.aggregation import RunPlaybookAggregationRequest, RunPlaybookAggregationResponse
from reflexio.models.config import Config, SetConfigResponse, StorageStatsResponse, WhoamiResponse
from reflexio.models.generation import (
    DEFAULT_VERSION,
    ManualPlaybookGenerationRequest,
    ManualPlaybookGenerationResponse,
    ManualProfileGenerationRequest,
    ManualProfileGenerationResponse,
    RerunPlaybookGenerationRequest,
    RerunPlaybookGenerationResponse,
    RerunProfileGenerationRequest,
    RerunProfileGenerationResponse,
)
from reflexio.models.operation import (
    CancelOperationRequest,
    CancelOperationResponse,
    GetOperationStatusResponse,
    OperationStatus,
    OperationStatusInfo,
)
from reflexio.models.optimisation import (
    CancelPlaybookOptimizationRequest,
    CancelPlaybookOptimizationResponse,
    GetPlaybookOptimizationResponse,
    GetPlaybookOptimizationsResponse,
    RunPlaybookOptimizationRequest,
    RunPlaybookOptimizationResponse,
)
from reflexio.models.stall import MarkNotifiedResponse, StallStateResponse
from reflexio.models.upgrade import (
    DowngradeProfilesRequest,
    DowngradeProfilesResponse,
    DowngradeUserPlaybooksRequest,
    DowngradeUserPlaybooksResponse,
    UpgradeProfilesRequest,
    UpgradeProfilesResponse,
    UpgradeUserPlaybooksRequest,
    UpgradeUserPlaybooksResponse,
)
from reflexio.models.usage import UsageResponse

SILENCE_SECONDS = 60.0
"""A running server sends something on an event stream more often than that."""
POLL_SECONDS = 0.25
"""Between two looks at an optimisation job that the caller waits for."""
Rerun = TypeVar("Rerun", RerunProfileGenerationResponse, RerunPlaybookGenerationResponse)


class SettingCalls(Connection):
    """Configuration and state."""

    async def get_config(self) -> Config:
        """The learning settings. Change attributes and hand it to `set_config`."""
        return await self._call("GET", "/api/get_config", Config)

    async def set_config(self, config: Config | dict[str, Any]) -> SetConfigResponse:
        """Stores settings. What is not named keeps its value; None or [] clears it."""
        return await self.update_config(_as_json(config))

    async def update_config(self, partial: dict[str, Any]) -> SetConfigResponse:
        """Stores the named settings and leaves all others as they are."""
        if not isinstance(partial, dict):
            raise TypeError("update_config takes a dict of settings; set_config takes a Config")
        return await self._call("POST", "/api/set_config", SetConfigResponse, _as_json(partial))

    async def whoami(self) -> WhoamiResponse:
        """Which organisation this client's key speaks for, and where its data is."""
        return await self._call("GET", "/api/whoami", WhoamiResponse)

    async def storage_stats(self, user_id: str) -> StorageStatsResponse:
        """How much is stored of one user."""
        return await self._call("GET", "/api/storage_stats", StorageStatsResponse, params={"user_id": user_id})


def _as_json(value: Any) -> Any:
    """Settings inside dicts and lists as JSON, with their secrets: the server stores them."""
    if isinstance(value, dict):
        return {key: _as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    if hasattr(value, "model_dump"):
        # Without warnings: the server validates dicts that were put into a list of settings.
        return value.model_dump(mode="json", exclude_unset=True, context={"reveal": True}, warnings=False)
    return value


class OperationCalls(Connection):
    """Operations."""

    async def upgrade_profiles(
        self, user_id: str | None = None, only_affected_users: bool = True, *, profile_ids: Sequence[str] | None = None
    ) -> UpgradeProfilesResponse:
        """Makes pending profiles current, archives those that were, and deletes those archived before.

        Only within what is named. `success` is false when nothing is pending.
        """
        request = build_request(
            UpgradeProfilesRequest, user_id=user_id, only_affected_users=only_affected_users, profile_ids=profile_ids
        )
        return await self._change("/api/upgrade_all_profiles", UpgradeProfilesResponse, request, PROFILES)

    async def upgrade_user_playbooks(
        self, agent_version: str | None = None, playbook_name: str | None = None, *, archive_current: bool = True
    ) -> UpgradeUserPlaybooksResponse:
        """Makes pending user playbooks current, archives those that were, and deletes those archived before.

        Only within what is named. `success` is false when nothing is pending.
        """
        request = build_request(
            UpgradeUserPlaybooksRequest,
            agent_version=agent_version,
            playbook_name=playbook_name,
            archive_current=archive_current,
        )
        return await self._change("/api/upgrade_all_user_playbooks", UpgradeUserPlaybooksResponse, request)

    async def downgrade_profiles(
        self, user_id: str | None = None, only_affected_users: bool = True, *, profile_ids: Sequence[str] | None = None
    ) -> DowngradeProfilesResponse:
        """Current and archived profiles change places. `success` is false when none is archived."""
        request = build_request(
            DowngradeProfilesRequest, user_id=user_id, only_affected_users=only_affected_users, profile_ids=profile_ids
        )
        return await self._change("/api/downgrade_all_profiles", DowngradeProfilesResponse, request, PROFILES)

    async def downgrade_user_playbooks(
        self, agent_version: str | None = None, playbook_name: str | None = None
    ) -> DowngradeUserPlaybooksResponse:
        """Current and archived user playbooks change places. `success` is false when none is archived."""
        request = build_request(DowngradeUserPlaybooksRequest, agent_version=agent_version, playbook_name=playbook_name)
        return await self._change("/api/downgrade_all_user_playbooks", DowngradeUserPlaybooksResponse, request)

    async def get_operation_status(self, service_name: str = "profile_generation") -> GetOperationStatusResponse:
        """How far the newest operation of a service is. `success` is false when there was none."""
        params = {"service_name": service_name}
        return await self._call("GET", "/api/get_operation_status", GetOperationStatusResponse, params=params)

    async def cancel_operation(self, service_name: str | None = None) -> CancelOperationResponse:
        """Asks the running operation of a service to stop, or those of all services."""
        request = build_request(CancelOperationRequest, service_name=service_name)
        return await self._call("POST", "/api/cancel_operation", CancelOperationResponse, request)

    async def follow_operation(self, operation_id: str) -> AsyncIterator[OperationStatusInfo]:
        """How far an operation is, now and after each change; the last one tells how it ended.

        A connection that breaks is made again.
        """
        last, failures = None, 0
        while True:
            try:
                async with aclosing(self._progress(operation_id)) as stream:
                    async for status in stream:
                        failures = 0
                        if status != last:
                            yield status
                        last = status
                return
            except errors.ReflexioError as error:
                if failures >= self._retries or not responses.may_repeat(error, repeatable=True):
                    raise
                await self._sleep(responses.pause(error, failures))
                failures += 1

    async def _progress(self, operation_id: str) -> AsyncGenerator[OperationStatusInfo, None]:
        """The events of one connection up to the operation's end. Raises ServerUnreachable when it breaks before."""
        url = f"{self.endpoint.url}/api/operations/{quote(operation_id, safe='')}/events"
        timeout = httpx.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS)
        http = self._http.get()
        try:
            async with http.stream("GET", url, headers=self.endpoint.headers, timeout=timeout) as response:
                if not response.is_success:
                    content = await response.aread()
                    raise responses.failure(responses.Reply(response.status_code, response.headers, content), url)
                async for line in response.aiter_lines():
                    if line.startswith("data:"):
                        status = OperationStatusInfo.model_validate_json(line.removeprefix("data:"))
                        yield status
                        if status.has_ended:
                            return
        except httpx.TransportError as error:
            raise self._unreachable(error) from error
        raise errors.ServerUnreachable("(it ended the stream early)", url=self.endpoint.url)

    async def get_usage(self, days: int = 30) -> UsageResponse:
        """Model calls and tokens by day (UTC), operation and model, newest first, and today's budget."""
        return await self._call("GET", "/api/usage", UsageResponse, params={"days": days})

    async def get_stall_state(self) -> StallStateResponse:
        """Whether learning waits because a provider refuses the key or the bill, and since when."""
        return await self._call("GET", "/stall_state", StallStateResponse)

    async def mark_stall_notified(self) -> MarkNotifiedResponse:
        """Notes that a person was told of the stall; false when there is none. Once or twice is the same."""
        return await self._call("POST", "/stall_state/notified", MarkNotifiedResponse)


class GenerationCalls(OperationCalls):
    """Learning once more."""

    async def rerun_profile_generation(
        self,
        user_id: str | None = None,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        source: str | None = None,
        extractor_names: Sequence[str] | None = None,
        wait_for_response: bool = False,
    ) -> RerunProfileGenerationResponse:
        """Learns profiles from all stored turns within the filters once more, as pending ones.

        They take the place of the pending profiles of those users; `upgrade_profiles` makes them current. `success`
        is false when no turn matches or another one is in progress. `wait_for_response` waits for the end.
        """
        request = build_request(
            RerunProfileGenerationRequest,
            user_id=user_id,
            start_time=start_time,
            end_time=end_time,
            source=source,
            extractor_names=extractor_names,
        )
        path = "/api/rerun_profile_generation"
        response = await self._change(path, RerunProfileGenerationResponse, request, PROFILES)
        if wait_for_response and response.success:
            response = await self._wait_for_rerun(response, "profiles_generated")
            self._cache.forget(PROFILES)
        return response

    async def rerun_playbook_generation(
        self,
        agent_version: str = DEFAULT_VERSION,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        playbook_name: str | None = None,
        wait_for_response: bool = False,
        *,
        source: str | None = None,
    ) -> RerunPlaybookGenerationResponse:
        """The same for user playbooks, from the turns of one agent version; see `upgrade_user_playbooks`."""
        request = build_request(
            RerunPlaybookGenerationRequest,
            agent_version=agent_version,
            start_time=start_time,
            end_time=end_time,
            playbook_name=playbook_name,
            source=source,
        )
        response = await self._change("/api/rerun_playbook_generation", RerunPlaybookGenerationResponse, request)
        if wait_for_response and response.success:
            response = await self._wait_for_rerun(response, "playbooks_generated")
        return response

    async def manual_profile_generation(
        self, user_id: str | None = None, source: str | None = None, extractor_names: Sequence[str] | None = None
    ) -> None:
        """Learns from the last turns of each user within the filters, into what is current. Does not wait for it."""
        request = build_request(
            ManualProfileGenerationRequest, user_id=user_id, source=source, extractor_names=extractor_names
        )
        path, response_type = "/api/manual_profile_generation", ManualProfileGenerationResponse
        call = partial(self._change, path, response_type, request, PROFILES, seconds=LEARNING_SECONDS)
        self._in_background(call, PROFILES)

    async def manual_playbook_generation(
        self, agent_version: str = DEFAULT_VERSION, source: str | None = None, playbook_name: str | None = None
    ) -> None:
        """The same for user playbooks, from the turns of one agent version. Does not wait for it."""
        request = build_request(
            ManualPlaybookGenerationRequest, agent_version=agent_version, source=source, playbook_name=playbook_name
        )
        path, response_type = "/api/manual_playbook_generation", ManualPlaybookGenerationResponse
        self._in_background(partial(self._change, path, response_type, request, seconds=LEARNING_SECONDS))

    async def run_playbook_aggregation(
        self, agent_version: str = DEFAULT_VERSION, playbook_name: str | None = None, wait_for_response: bool = False
    ) -> RunPlaybookAggregationResponse:
        """Makes pending agent playbooks of what many users taught one agent version, of one type or all.

        Runs whatever the trigger count. Without `wait_for_response` it answers within some seconds with what is known
        by then, and goes on; `is_complete` tells. `success` is false while another one is in progress, or if it failed.
        """
        request = build_request(RunPlaybookAggregationRequest, agent_version=agent_version, playbook_name=playbook_name)
        path, params = "/api/run_playbook_aggregation", {"wait_for_response": "false"}
        response = await self._call(
            "POST", path, RunPlaybookAggregationResponse, request, params=params, repeatable=False
        )
        if wait_for_response and response.success and not response.is_complete:
            end = await self._wait_for_operation(response.operation_id)
            response = RunPlaybookAggregationResponse.of(end, response.operation_id)
        if response.success and not response.is_complete:
            self._cache.pause(AGENT_PLAYBOOKS)
        self._cache.forget(AGENT_PLAYBOOKS)
        return response

    async def _wait_for_operation(self, operation_id: str) -> OperationStatusInfo:
        async for status in self.follow_operation(operation_id):
            last = status
        return last

    async def _wait_for_rerun(self, response: Rerun, count_field: str) -> Rerun:
        end = await self._wait_for_operation(response.operation_id)
        count, success = end.stats.get("total_generated", 0), end.status is OperationStatus.COMPLETED
        failed = f"; {end.failed_users} user(s) failed" if end.failed_users else ""
        unfinished = end.error_message or f"The operation is {end.status.value}"
        msg = f"Generated {count}{failed}" if success else unfinished
        return response.model_copy(update={"success": success, "msg": msg, count_field: count})


class OptimisationCalls(Connection):
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
        request = build_request(
            RunPlaybookOptimizationRequest,
            agent_playbook_id=agent_playbook_id,
            user_playbook_id=user_playbook_id,
            dry_run=dry_run,
            seed=seed,
        )
        response = await self._change("/api/run_playbook_optimization", RunPlaybookOptimizationResponse, request)
        if not wait_for_response or response.job_id is None:
            return response
        job = (await self.get_playbook_optimization(response.job_id, details=False)).job
        while not job.has_ended:
            await self._sleep(POLL_SECONDS)
            job = (await self.get_playbook_optimization(response.job_id, details=False)).job
        self._cache.forget(AGENT_PLAYBOOKS)
        success = job.status == "completed"
        end = {"success": success, "msg": job.decision_reason, "status": job.status, "job": job}
        return response.model_copy(update=end)

    async def get_playbook_optimizations(
        self, limit: int = 100, *, cursor: str | None = None
    ) -> GetPlaybookOptimizationsResponse:
        """Jobs, newest first."""
        path, params = "/api/get_playbook_optimizations", {"limit": limit, "cursor": cursor}
        return await self._call("GET", path, GetPlaybookOptimizationsResponse, params=params)

    async def get_playbook_optimization(self, job_id: int, *, details: bool = True) -> GetPlaybookOptimizationResponse:
        """One job with all wordings it tried, how each did in each window, and what happened."""
        params = {"job_id": job_id, "details": details}
        return await self._call("GET", "/api/get_playbook_optimization", GetPlaybookOptimizationResponse, params=params)

    async def cancel_playbook_optimization(self, job_id: int) -> CancelPlaybookOptimizationResponse:
        """Stops a job: it is skipped, and nothing is changed. `success` is false when it had ended before."""
        request = build_request(CancelPlaybookOptimizationRequest, job_id=job_id)
        return await self._change("/api/cancel_playbook_optimization", CancelPlaybookOptimizationResponse, request)
