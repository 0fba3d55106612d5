"""What goes on around learning: runs on demand, generations that change places, long operations, and settings."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import quote

import httpx

from reflexio import errors
from reflexio.client import responses, routes
from reflexio.client.aio.connection import Connection
from reflexio.client.cache import AGENT_PLAYBOOKS, PROFILES
from reflexio.client.requests import as_json, prepare
from reflexio.models.config import Config, SetConfigResponse, StorageStatsResponse, WhoamiResponse
from reflexio.models.evaluation import GetAgentSuccessEvaluationResultsResponse
from reflexio.models.operation import (
    DEFAULT_VERSION,
    CancelOperationResponse,
    DowngradeProfilesResponse,
    DowngradeUserPlaybooksResponse,
    GetOperationStatusResponse,
    OperationStatusInfo,
    RerunPlaybookGenerationResponse,
    RerunProfileGenerationResponse,
    UpgradeProfilesResponse,
    UpgradeUserPlaybooksResponse,
)
from reflexio.models.optimisation import (
    CancelPlaybookOptimizationResponse,
    GetPlaybookOptimizationResponse,
    GetPlaybookOptimizationsResponse,
    RunPlaybookOptimizationResponse,
)
from reflexio.models.review import RunPlaybookAggregationResponse
from reflexio.models.usage import MarkNotifiedResponse, StallStateResponse, UsageResponse

SILENCE_SECONDS = 60.0
"""A running server sends something on an event stream more often than that."""
POLL_SECONDS = 0.25
"""Between two looks at an optimisation job that the caller waits for."""
Rerun = TypeVar("Rerun", RerunProfileGenerationResponse, RerunPlaybookGenerationResponse)


class SettingCalls(Connection):
    """Configuration and state."""

    async def get_config(self) -> Config:
        """The learning settings. Change attributes and pass it to `set_config`."""
        return await self._send(routes.GET_CONFIG)

    async def set_config(self, config: Config | dict[str, Any]) -> SetConfigResponse:
        """Stores settings. Settings that are not named keep their values; None or [] clears one."""
        return await self.update_config(as_json(config))

    async def update_config(self, partial: dict[str, Any]) -> SetConfigResponse:
        """Stores the named settings and leaves all others as they are."""
        if not isinstance(partial, dict):
            raise TypeError("update_config takes a dict of settings; set_config takes a Config")
        return await self._call(routes.SET_CONFIG, as_json(partial))

    async def whoami(self) -> WhoamiResponse:
        """The organisation of this client's key, and where its data is stored."""
        return await self._send(routes.WHOAMI)

    async def get_agent_success_evaluation_results(
        self,
        limit: int = 100,
        agent_version: str | None = None,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
    ) -> GetAgentSuccessEvaluationResultsResponse:
        """Results of evaluated sessions. The list is empty: the server does not evaluate sessions yet."""
        return await self._send(
            routes.GET_EVALUATIONS,
            limit=limit,
            agent_version=agent_version,
            start_time=start_time,
            end_time=end_time,
        )

    async def storage_stats(self, user_id: str) -> StorageStatsResponse:
        """How much is stored of one user."""
        return await self._send(routes.STORAGE_STATS, user_id=user_id)


class OperationCalls(Connection):
    """Operations."""

    async def upgrade_profiles(
        self,
        user_id: str | None = None,
        only_affected_users: bool = True,
        *,
        profile_ids: Sequence[str] | None = None,
        archive_current: bool = True,
    ) -> UpgradeProfilesResponse:
        """Makes pending profiles current, archives the current ones, and deletes those archived before.

        Only within the given filters. `success` is false when nothing is pending.
        """
        return await self._send(
            routes.UPGRADE_PROFILES,
            user_id=user_id,
            only_affected_users=only_affected_users,
            profile_ids=profile_ids,
            archive_current=archive_current,
        )

    async def upgrade_user_playbooks(
        self, agent_version: str | None = None, playbook_name: str | None = None, *, archive_current: bool = True
    ) -> UpgradeUserPlaybooksResponse:
        """Makes pending user playbooks current, archives the current ones, and deletes those archived before.

        Only within the given filters. `success` is false when nothing is pending.
        """
        return await self._send(
            routes.UPGRADE_PLAYBOOKS,
            agent_version=agent_version,
            playbook_name=playbook_name,
            archive_current=archive_current,
        )

    async def downgrade_profiles(
        self, user_id: str | None = None, only_affected_users: bool = True, *, profile_ids: Sequence[str] | None = None
    ) -> DowngradeProfilesResponse:
        """Exchanges current and archived profiles. `success` is false when none is archived."""
        return await self._send(
            routes.DOWNGRADE_PROFILES, user_id=user_id, only_affected_users=only_affected_users, profile_ids=profile_ids
        )

    async def downgrade_user_playbooks(
        self, agent_version: str | None = None, playbook_name: str | None = None
    ) -> DowngradeUserPlaybooksResponse:
        """Exchanges current and archived user playbooks. `success` is false when none is archived."""
        return await self._send(routes.DOWNGRADE_PLAYBOOKS, agent_version=agent_version, playbook_name=playbook_name)

    async def get_operation_status(self, service_name: str = "profile_generation") -> GetOperationStatusResponse:
        """The progress of the newest operation of a service. `success` is false when there was none."""
        return await self._send(routes.GET_OPERATION_STATUS, service_name=service_name)

    async def cancel_operation(self, service_name: str | None = None) -> CancelOperationResponse:
        """Asks the running operation of a service to stop, or those of all services."""
        return await self._send(routes.CANCEL_OPERATION, service_name=service_name)

    async def follow_operation(self, operation_id: str) -> AsyncIterator[OperationStatusInfo]:
        """The progress of an operation, now and after each change. The last status says how it ended.

        A broken connection is opened again.
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
        path = f"/api/operations/{quote(operation_id, safe='')}/events"
        request = prepare(self.endpoint, "GET", path, seconds=SILENCE_SECONDS)
        try:
            async with aclosing(await self._http.get().send(request, stream=True)) as response:
                if not response.is_success:
                    reply = responses.HttpReply(response.status_code, response.headers, await response.aread())
                    raise responses.failure(reply, str(request.url))
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
        return await self._send(routes.GET_USAGE, days=days)

    async def get_stall_state(self) -> StallStateResponse:
        """Whether learning waits because a provider refuses the key or the bill, and since when."""
        return await self._send(routes.GET_STALL_STATE)

    async def mark_stall_notified(self) -> MarkNotifiedResponse:
        """Notes that a person was notified of the stall. `notified_in_cc` is false when there is none."""
        return await self._send(routes.MARK_STALL_NOTIFIED)


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
        *,
        only_unread: bool = False,
    ) -> RerunProfileGenerationResponse:
        """Learns profiles again from all stored turns within the filters. The new profiles are pending.

        They replace the pending profiles of those users; `upgrade_profiles` makes them current. `success` is false when
        no turn matches or another rerun is in progress. `wait_for_response` waits for the end.

        With `only_unread`, only from turns in languages that the learner did not understand at the time. What they
        teach belongs beside the current profiles: upgrade with `archive_current=False`.
        """
        response = await self._send(
            routes.RERUN_PROFILES,
            user_id=user_id,
            start_time=start_time,
            end_time=end_time,
            source=source,
            extractor_names=extractor_names,
            only_unread=only_unread,
        )
        if wait_for_response and response.success:
            response = await self._wait_for_rerun(response)
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
        only_unread: bool = False,
    ) -> RerunPlaybookGenerationResponse:
        """Learns user playbooks again, from the turns of one agent version; see `rerun_profile_generation`."""
        response = await self._send(
            routes.RERUN_PLAYBOOKS,
            agent_version=agent_version,
            start_time=start_time,
            end_time=end_time,
            playbook_name=playbook_name,
            source=source,
            only_unread=only_unread,
        )
        if wait_for_response and response.success:
            response = await self._wait_for_rerun(response)
        return response

    async def manual_profile_generation(
        self, user_id: str | None = None, source: str | None = None, extractor_names: Sequence[str] | None = None
    ) -> None:
        """Learns current profiles from the last turns of each user within the filters. Does not wait for the end."""
        self._start(routes.GENERATE_PROFILES, user_id=user_id, source=source, extractor_names=extractor_names)

    async def manual_playbook_generation(
        self, agent_version: str = DEFAULT_VERSION, source: str | None = None, playbook_name: str | None = None
    ) -> None:
        """Learns current user playbooks from the last turns of one agent version. Does not wait for the end."""
        self._start(routes.GENERATE_PLAYBOOKS, agent_version=agent_version, source=source, playbook_name=playbook_name)

    async def run_playbook_aggregation(
        self, agent_version: str = DEFAULT_VERSION, playbook_name: str | None = None, wait_for_response: bool = False
    ) -> RunPlaybookAggregationResponse:
        """Makes pending agent playbooks from the user playbooks of one agent version, of one type or all.

        The trigger count does not matter. Without `wait_for_response` it returns after some seconds with what it has
        done so far and goes on; `is_complete` says so. `success` is false if another run is in progress or it failed.
        """
        response = await self._send(routes.RUN_AGGREGATION, agent_version=agent_version, playbook_name=playbook_name)
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

    async def _wait_for_rerun(self, response: Rerun) -> Rerun:
        end = await self._wait_for_operation(response.operation_id)
        return response.model_copy(update=responses.rerun_result(type(response), end))


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

        A better wording replaces the old one and stays pending. `dry_run` starts nothing and returns how many calls a
        run costs at most. `wait_for_response` waits for the end.
        """
        response = await self._send(
            routes.RUN_OPTIMISATION,
            agent_playbook_id=agent_playbook_id,
            user_playbook_id=user_playbook_id,
            dry_run=dry_run,
            seed=seed,
        )
        if not wait_for_response or response.job_id is None:
            return response
        while not (job := (await self.get_playbook_optimization(response.job_id, details=False)).job).has_ended:
            await self._sleep(POLL_SECONDS)
        self._cache.forget(AGENT_PLAYBOOKS)
        end = {"success": job.status == "completed", "msg": job.decision_reason, "status": job.status, "job": job}
        return response.model_copy(update=end)

    async def get_playbook_optimizations(
        self, limit: int = 100, *, cursor: str | None = None
    ) -> GetPlaybookOptimizationsResponse:
        """Optimisation jobs, newest first."""
        return await self._send(routes.GET_OPTIMISATIONS, limit=limit, cursor=cursor)

    async def get_playbook_optimization(self, job_id: int, *, details: bool = True) -> GetPlaybookOptimizationResponse:
        """One job with the wordings it tried, the result of each in each window, and its events."""
        return await self._send(routes.GET_OPTIMISATION, job_id=job_id, details=details)

    async def cancel_playbook_optimization(self, job_id: int) -> CancelPlaybookOptimizationResponse:
        """Stops a job; no playbook changes. `success` is false when the job had ended before."""
        return await self._send(routes.CANCEL_OPTIMISATION, job_id=job_id)
