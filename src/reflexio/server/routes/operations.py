"""What goes on around learning: generations that change places, long work and how far it is, stalls and spend."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import StreamingResponse

from reflexio.jobs import operations
from reflexio.learning import stall, upgrade
from reflexio.models.operation import (
    CancelOperationRequest,
    CancelOperationResponse,
    GetOperationStatusResponse,
    OperationStatusInfo,
)
from reflexio.models.shape import Name
from reflexio.models.stall import MarkNotifiedResponse, StallStateResponse
from reflexio.models.status import Status
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
from reflexio.organisations.usage import usage as read_usage
from reflexio.ports.storage import Tx
from reflexio.server.body import JsonRoute
from reflexio.server.parts import house, store

router = APIRouter(tags=["operations"], route_class=JsonRoute)

LOOK_EVERY = 0.25
"""Seconds between two looks at an operation that somebody follows."""
QUIET_LOOKS = 40
"""Looks without news after which the connection is given a sign of life: 10 seconds."""
NOTHING_PENDING = "No pending items found to upgrade"
NOTHING_ARCHIVED = "No archived items found to downgrade"


def _now(request: Request) -> int:
    return house(request).clock.now()


@router.post("/api/upgrade_all_profiles", response_model_exclude_none=True)
async def upgrade_all_profiles(request: Request, asked: UpgradeProfilesRequest) -> UpgradeProfilesResponse:
    """Makes pending profiles current, archives those that were, and deletes those archived before.

    Only within what is named, in one transaction. With `profile_ids`, only the rows named are touched. When nothing
    is pending, nothing changes and `success` is false.
    """
    now, scope = _now(request), upgrade.profile_scope(asked)
    if asked.only_affected_users:
        scope = upgrade.affected_users(scope, Status.PENDING, now)
    made = await store(request).write(lambda tx: upgrade.upgrade(tx, scope, now))
    return UpgradeProfilesResponse(
        success=made.promoted > 0,
        profiles_promoted=made.promoted,
        profiles_archived=made.archived,
        profiles_deleted=made.deleted,
        message=f"Promoted {made.promoted} profile(s)" if made.promoted else NOTHING_PENDING,
    )


@router.post("/api/upgrade_all_user_playbooks", response_model_exclude_none=True)
async def upgrade_all_user_playbooks(
    request: Request, asked: UpgradeUserPlaybooksRequest
) -> UpgradeUserPlaybooksResponse:
    """The same for user playbooks of an agent version, of a type, or of both."""
    now, scope = _now(request), upgrade.user_playbook_scope(asked)
    act = upgrade.upgrade if asked.archive_current else upgrade.promote
    made = await store(request).write(lambda tx: act(tx, scope, now))
    return UpgradeUserPlaybooksResponse(
        success=made.promoted > 0,
        user_playbooks_promoted=made.promoted,
        user_playbooks_archived=made.archived,
        user_playbooks_deleted=made.deleted,
        message=f"Promoted {made.promoted} user playbook(s)" if made.promoted else NOTHING_PENDING,
    )


@router.post("/api/downgrade_all_profiles", response_model_exclude_none=True)
async def downgrade_all_profiles(request: Request, asked: DowngradeProfilesRequest) -> DowngradeProfilesResponse:
    """Current and archived profiles change places. When nothing is archived, nothing changes and `success` is false."""
    now, scope = _now(request), upgrade.profile_scope(asked)
    if asked.only_affected_users:
        scope = upgrade.affected_users(scope, Status.ARCHIVED, now)
    made = await store(request).write(lambda tx: upgrade.downgrade(tx, scope, now))
    return DowngradeProfilesResponse(
        success=made.restored > 0,
        profiles_restored=made.restored,
        profiles_demoted=made.demoted,
        message=f"Restored {made.restored} profile(s)" if made.restored else NOTHING_ARCHIVED,
    )


@router.post("/api/downgrade_all_user_playbooks", response_model_exclude_none=True)
async def downgrade_all_user_playbooks(
    request: Request, asked: DowngradeUserPlaybooksRequest
) -> DowngradeUserPlaybooksResponse:
    """The same for user playbooks of an agent version, of a type, or of both."""
    now, scope = _now(request), upgrade.user_playbook_scope(asked)
    made = await store(request).write(lambda tx: upgrade.downgrade(tx, scope, now))
    return DowngradeUserPlaybooksResponse(
        success=made.restored > 0,
        user_playbooks_restored=made.restored,
        user_playbooks_demoted=made.demoted,
        message=f"Restored {made.restored} user playbook(s)" if made.restored else NOTHING_ARCHIVED,
    )


@router.get("/api/get_operation_status", response_model_exclude_none=True)
async def get_operation_status(
    request: Request, service_name: Name = "profile_generation"
) -> GetOperationStatusResponse:
    """How far the newest operation of a service is. `success` is false when there was none.

    One whose process gave no sign of life for five minutes is told as failed.
    """

    def look(tx: Tx) -> OperationStatusInfo | None:
        found = operations.latest(tx, service_name)
        return operations.describe(tx, found, _now(request)) if found else None

    found = await store(request).read(look)
    msg = f"The operation is {found.status.value}" if found else f"There was no operation of {service_name!r}"
    return GetOperationStatusResponse(success=found is not None, operation_status=found, msg=msg)


@router.post("/api/cancel_operation", response_model_exclude_none=True)
async def cancel_operation(request: Request, which: CancelOperationRequest) -> CancelOperationResponse:
    """Asks the running operation of a service to stop, or those of all services. It stops after the window at hand."""
    now = _now(request)
    asked = await store(request).write(lambda tx: operations.cancel(tx, which.service_name, now))
    names = [each.service_name for each in asked]
    msg = f"Asked to stop: {', '.join(names)}" if names else "No operation is in progress"
    return CancelOperationResponse(cancelled_services=names, msg=msg)


class EventStream(StreamingResponse):
    """Server-sent events."""

    media_type = "text/event-stream"


@router.get("/api/operations/{operation_id}/events", response_class=EventStream)
async def operation_events(request: Request, operation_id: str) -> EventStream:
    """How far an operation is, as server-sent events: one `progress` event now and one after each change.

    The data of each is an `OperationStatusInfo` that names the last 20 users. The stream ends by itself after the one
    that tells the end. A 404 when there is no such operation.
    """
    here = store(request)
    await here.read(lambda tx: operations.get(tx, operation_id))

    async def pause() -> bool:
        await asyncio.sleep(LOOK_EVERY)
        return not request.app.state.stopping

    told = operations.follow(here, house(request).clock, operation_id, pause)
    return EventStream(_events(told), headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})


async def _events(told: AsyncIterator[OperationStatusInfo | None]) -> AsyncIterator[str]:
    quiet = 0
    async for news in told:
        quiet = 0 if news else quiet + 1
        if news:
            # In ASCII: some readers take other characters than line feeds for the end of a line.
            yield f"event: progress\ndata: {json.dumps(news.model_dump(mode='json', exclude_none=True))}\n\n"
        elif quiet % QUIET_LOOKS == 0:
            yield ": still at it\n\n"


@router.get("/api/usage", response_model_exclude_none=True)
async def usage(request: Request, days: Annotated[int, Query(ge=1, le=366)] = 30) -> UsageResponse:
    """Model calls and tokens by day (UTC), operation and model, newest first, and today's budget."""
    return await read_usage(store(request), house(request).clock, days)


@router.get("/stall_state", response_model_exclude_none=True)
async def stall_state(request: Request) -> StallStateResponse:
    """Whether learning waits because a provider refuses the key or the bill. What is published meanwhile is kept."""
    return StallStateResponse.of(await store(request).read(stall.state))


@router.post("/stall_state/notified")
async def stall_state_notified(request: Request) -> MarkNotifiedResponse:
    """Notes that a person was told of the stall. False when there is none."""
    return MarkNotifiedResponse(notified_in_cc=await store(request).write(stall.mark_notified))
