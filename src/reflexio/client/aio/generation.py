"""Learning once more: from stored turns, beside what is current or into it, and from what many users taught."""

from collections.abc import Sequence
from datetime import datetime

from reflexio.client.aio.calls import zoned
from reflexio.client.aio.operations import OperationCalls
from reflexio.client.answers import build
from reflexio.models.aggregation import RunPlaybookAggregationRequest, RunPlaybookAggregationResponse
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
from reflexio.models.operation import OperationStatus, OperationStatusInfo


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
        asked = build(
            RerunProfileGenerationRequest,
            {
                "user_id": user_id,
                "start_time": zoned(start_time),
                "end_time": zoned(end_time),
                "source": source,
                "extractor_names": extractor_names,
            },
        )
        path = "/api/rerun_profile_generation"
        self._cache.forget("profiles")
        begun = await self._call("POST", path, RerunProfileGenerationResponse, asked, repeatable=False)
        if not (wait_for_response and begun.success):
            return begun
        ended = await self._end_of(begun.operation_id)
        self._cache.forget("profiles")
        success, msg, count = _outcome(ended)
        return begun.model_copy(update={"success": success, "msg": msg, "profiles_generated": count})

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
        asked = build(
            RerunPlaybookGenerationRequest,
            {
                "agent_version": agent_version,
                "start_time": zoned(start_time),
                "end_time": zoned(end_time),
                "playbook_name": playbook_name,
                "source": source,
            },
        )
        path = "/api/rerun_playbook_generation"
        begun = await self._call("POST", path, RerunPlaybookGenerationResponse, asked, repeatable=False)
        if not (wait_for_response and begun.success):
            return begun
        success, msg, count = _outcome(await self._end_of(begun.operation_id))
        return begun.model_copy(update={"success": success, "msg": msg, "playbooks_generated": count})

    async def manual_profile_generation(
        self,
        user_id: str | None = None,
        source: str | None = None,
        extractor_names: Sequence[str] | None = None,
    ) -> None:
        """Learns from the last turns of each user within the filters, into what is current. Does not wait for it."""
        asked = build(
            ManualProfileGenerationRequest,
            {"user_id": user_id, "source": source, "extractor_names": extractor_names},
        )

        async def call() -> ManualProfileGenerationResponse:
            path = "/api/manual_profile_generation"
            made = await self._call("POST", path, ManualProfileGenerationResponse, asked, repeatable=False, waited=True)
            self._cache.forget("profiles")
            return made

        self._cache.forget("profiles")
        self._background.start(call)

    async def manual_playbook_generation(
        self,
        agent_version: str = DEFAULT_VERSION,
        source: str | None = None,
        playbook_name: str | None = None,
    ) -> None:
        """The same for user playbooks, from the turns of one agent version. Does not wait for it."""
        asked = build(
            ManualPlaybookGenerationRequest,
            {"agent_version": agent_version, "source": source, "playbook_name": playbook_name},
        )

        async def call() -> ManualPlaybookGenerationResponse:
            path = "/api/manual_playbook_generation"
            return await self._call(
                "POST", path, ManualPlaybookGenerationResponse, asked, repeatable=False, waited=True
            )

        self._background.start(call)

    async def run_playbook_aggregation(
        self,
        agent_version: str = DEFAULT_VERSION,
        playbook_name: str | None = None,
        wait_for_response: bool = False,
    ) -> RunPlaybookAggregationResponse:
        """Makes pending agent playbooks of what many users taught one agent version, of one type or all.

        Runs whatever the trigger count. Without `wait_for_response` it answers within some seconds with what is known
        by then, and goes on; `is_complete` tells. `success` is false while another one is in progress, or if it failed.
        """
        asked = build(RunPlaybookAggregationRequest, {"agent_version": agent_version, "playbook_name": playbook_name})
        seen = await self._call(
            "POST",
            "/api/run_playbook_aggregation",
            RunPlaybookAggregationResponse,
            asked,
            params={"wait_for_response": "false"},
            repeatable=False,
        )
        if wait_for_response and seen.success and not seen.is_complete:
            ended = await self._end_of(seen.operation_id)
            seen = RunPlaybookAggregationResponse.of(ended, seen.operation_id)
        if seen.success and not seen.is_complete:
            self._cache.doubt("agent_playbooks")
        self._cache.forget("agent_playbooks")
        return seen

    async def _end_of(self, operation_id: str) -> OperationStatusInfo:
        async for news in self.follow_operation(operation_id):
            last = news
        return last


def _outcome(ended: OperationStatusInfo) -> tuple[bool, str, int]:
    count = ended.stats.get("total_generated", 0)
    if ended.status is not OperationStatus.COMPLETED:
        return False, ended.error_message or f"The operation is {ended.status.value}", count
    failed = f"; {ended.failed_users} user(s) failed" if ended.failed_users else ""
    return True, f"Generated {count}{failed}", count
