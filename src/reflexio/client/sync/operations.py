# Generated from client/aio/operations.py by scripts/make_sync_client.py. Change that file and run `make format`.
"""What goes on around learning: generations that change places, long work and how far it is, stalls and spend."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from urllib.parse import quote

import httpx

from reflexio import errors
from reflexio.client import answers
from reflexio.client.answers import build
from reflexio.client.http1 import Reply
from reflexio.client.sync.calls import CONNECT_SECONDS, Calls
from reflexio.models.operation import (
    CancelOperationRequest,
    CancelOperationResponse,
    GetOperationStatusResponse,
    OperationStatusInfo,
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
"""A server that is there says something more often than that."""


class OperationCalls(Calls):
    """Operations."""

    def upgrade_profiles(
        self,
        user_id: str | None = None,
        only_affected_users: bool = True,
        *,
        profile_ids: Sequence[str] | None = None,
    ) -> UpgradeProfilesResponse:
        """Makes pending profiles current, archives those that were, and deletes those archived before.

        Only within what is named. `success` is false when nothing is pending.
        """
        asked = build(
            UpgradeProfilesRequest,
            {"user_id": user_id, "only_affected_users": only_affected_users, "profile_ids": profile_ids},
        )
        done = self._call("POST", "/api/upgrade_all_profiles", UpgradeProfilesResponse, asked, repeatable=False)
        self._cache.forget("profiles")
        return done

    def upgrade_user_playbooks(
        self,
        agent_version: str | None = None,
        playbook_name: str | None = None,
        *,
        archive_current: bool = True,
    ) -> UpgradeUserPlaybooksResponse:
        """Makes pending user playbooks current, archives those that were, and deletes those archived before.

        Only within what is named. `success` is false when nothing is pending.
        """
        asked = build(
            UpgradeUserPlaybooksRequest,
            {"agent_version": agent_version, "playbook_name": playbook_name, "archive_current": archive_current},
        )
        return self._call(
            "POST", "/api/upgrade_all_user_playbooks", UpgradeUserPlaybooksResponse, asked, repeatable=False
        )

    def downgrade_profiles(
        self,
        user_id: str | None = None,
        only_affected_users: bool = True,
        *,
        profile_ids: Sequence[str] | None = None,
    ) -> DowngradeProfilesResponse:
        """Current and archived profiles change places. `success` is false when none is archived."""
        asked = build(
            DowngradeProfilesRequest,
            {"user_id": user_id, "only_affected_users": only_affected_users, "profile_ids": profile_ids},
        )
        done = self._call("POST", "/api/downgrade_all_profiles", DowngradeProfilesResponse, asked, repeatable=False)
        self._cache.forget("profiles")
        return done

    def downgrade_user_playbooks(
        self, agent_version: str | None = None, playbook_name: str | None = None
    ) -> DowngradeUserPlaybooksResponse:
        """Current and archived user playbooks change places. `success` is false when none is archived."""
        asked = build(DowngradeUserPlaybooksRequest, {"agent_version": agent_version, "playbook_name": playbook_name})
        return self._call(
            "POST", "/api/downgrade_all_user_playbooks", DowngradeUserPlaybooksResponse, asked, repeatable=False
        )

    def get_operation_status(self, service_name: str = "profile_generation") -> GetOperationStatusResponse:
        """How far the newest operation of a service is. `success` is false when there was none."""
        params = {"service_name": service_name}
        return self._call("GET", "/api/get_operation_status", GetOperationStatusResponse, params=params)

    def cancel_operation(self, service_name: str | None = None) -> CancelOperationResponse:
        """Asks the running operation of a service to stop, or those of all services."""
        which = build(CancelOperationRequest, {"service_name": service_name})
        return self._call("POST", "/api/cancel_operation", CancelOperationResponse, which)

    def follow_operation(self, operation_id: str) -> Iterator[OperationStatusInfo]:
        """How far an operation is, now and after each change; the last one tells how it ended.

        A connection that breaks is made again.
        """
        seen, failures = None, 0
        while True:
            try:
                with closing(self._progress(operation_id)) as stream:
                    for news in stream:
                        failures = 0
                        if news != seen:
                            yield news
                        seen = news
                return
            except errors.ReflexioError as error:
                if failures >= self._retries or not answers.may_repeat(error, repeatable=True):
                    raise
                self._sleep(answers.pause(error, failures))
                failures += 1

    def _progress(self, operation_id: str) -> Generator[OperationStatusInfo, None, None]:
        """What one connection tells, up to the operation's end. Raises ServerUnreachable when it breaks before."""
        url = f"{self.endpoint.url}/api/operations/{quote(operation_id, safe='')}/events"
        patience = httpx.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS)
        try:
            with self._http.stream("GET", url, headers=self.endpoint.headers, timeout=patience) as response:
                if not response.is_success:
                    response.read()
                    raise answers.failure(Reply.of(response), url)
                for line in response.iter_lines():
                    if line.startswith("data:"):
                        news = OperationStatusInfo.model_validate_json(line.removeprefix("data:"))
                        yield news
                        if news.has_ended:
                            return
        except httpx.TransportError as error:
            raise errors.ServerUnreachable(f"({type(error).__name__}: {error})", url=self.endpoint.url) from error
        raise errors.ServerUnreachable("(it ended the stream early)", url=self.endpoint.url)

    def get_usage(self, days: int = 30) -> UsageResponse:
        """Model calls and tokens by day (UTC), operation and model, newest first, and today's budget."""
        return self._call("GET", "/api/usage", UsageResponse, params={"days": days})

    def get_stall_state(self) -> StallStateResponse:
        """Whether learning waits because a provider refuses the key or the bill, and since when."""
        return self._call("GET", "/stall_state", StallStateResponse)

    def mark_stall_notified(self) -> MarkNotifiedResponse:
        """Notes that a person was told of the stall; false when there is none. Once or twice is the same."""
        return self._call("POST", "/stall_state/notified", MarkNotifiedResponse)
