"""Operations on learnings: reruns, manual runs, upgrade and downgrade; their progress; stalls; model usage."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Query, Request
from pydantic import BaseModel
from starlette.responses import StreamingResponse

from reflexio.errors import Conflict, NotFound
from reflexio.jobs import operations
from reflexio.learning import rerun, stall, upgrade
from reflexio.learning.service import manual_playbook_scope, manual_profile_scope
from reflexio.models.access import KeyScope
from reflexio.models.learning import Kind, Status
from reflexio.models.operation import (
    CancelOperationRequest,
    CancelOperationResponse,
    DowngradeProfilesRequest,
    DowngradeProfilesResponse,
    DowngradeUserPlaybooksRequest,
    DowngradeUserPlaybooksResponse,
    GetOperationStatusResponse,
    ManualPlaybookGenerationRequest,
    ManualPlaybookGenerationResponse,
    ManualProfileGenerationRequest,
    ManualProfileGenerationResponse,
    OperationStatusInfo,
    RerunPlaybookGenerationRequest,
    RerunPlaybookGenerationResponse,
    RerunProfileGenerationRequest,
    RerunProfileGenerationResponse,
    UpgradeProfilesRequest,
    UpgradeProfilesResponse,
    UpgradeUserPlaybooksRequest,
    UpgradeUserPlaybooksResponse,
)
from reflexio.models.usage import MarkNotifiedResponse, StallStateResponse, UsageResponse
from reflexio.models.wire import Name
from reflexio.organisations.usage import usage as read_usage
from reflexio.ports.storage import TurnScope, Tx
from reflexio.ports.work import Json
from reflexio.server.direct import Router
from reflexio.server.routes import get_reflexio, get_store
from reflexio.server.scopes import needs

router = Router(tag="operations")

POLL_SECONDS = 0.25
"""Time between two reads of an operation that a caller follows."""
QUIET_POLLS = 40
"""Reads without news after which a comment keeps the connection alive: 10 seconds."""
NOTHING_PENDING = "No pending items found to upgrade"
NOTHING_ARCHIVED = "No archived items found to downgrade"
BEGUN = "Begun; follow it by its operation_id."


def _now(request: Request) -> int:
    return get_reflexio(request).clock.now()


@router.direct("POST", "/api/upgrade_all_profiles", KeyScope.REVIEW)
async def upgrade_all_profiles(request: Request, body: UpgradeProfilesRequest) -> UpgradeProfilesResponse:
    """Makes pending profiles current, archives the current ones, and deletes those archived before.

    It applies only within the filters, in one transaction; with `profile_ids`, only to those rows. When nothing is
    pending, nothing changes and `success` is false.
    """
    now, scope = _now(request), upgrade.profile_scope(body)
    if body.only_affected_users:
        scope = upgrade.affected_users(scope, Status.PENDING, now)
    act = upgrade.upgrade if body.archive_current else upgrade.promote
    counts = await get_store(request).write(lambda tx: act(tx, scope, now))
    return UpgradeProfilesResponse(
        success=counts.promoted > 0,
        profiles_promoted=counts.promoted,
        profiles_archived=counts.archived,
        profiles_deleted=counts.deleted,
        message=f"Promoted {counts.promoted} profile(s)" if counts.promoted else NOTHING_PENDING,
    )


@router.direct("POST", "/api/upgrade_all_user_playbooks", KeyScope.REVIEW)
async def upgrade_all_user_playbooks(
    request: Request, body: UpgradeUserPlaybooksRequest
) -> UpgradeUserPlaybooksResponse:
    """The same as `upgrade_all_profiles`, for user playbooks of an agent version, of a type, or of both."""
    now, scope = _now(request), upgrade.user_playbook_scope(body)
    act = upgrade.upgrade if body.archive_current else upgrade.promote
    counts = await get_store(request).write(lambda tx: act(tx, scope, now))
    return UpgradeUserPlaybooksResponse(
        success=counts.promoted > 0,
        user_playbooks_promoted=counts.promoted,
        user_playbooks_archived=counts.archived,
        user_playbooks_deleted=counts.deleted,
        message=f"Promoted {counts.promoted} user playbook(s)" if counts.promoted else NOTHING_PENDING,
    )


@router.direct("POST", "/api/downgrade_all_profiles", KeyScope.REVIEW)
async def downgrade_all_profiles(request: Request, body: DowngradeProfilesRequest) -> DowngradeProfilesResponse:
    """Swaps current and archived profiles. When nothing is archived, nothing changes and `success` is false."""
    now, scope = _now(request), upgrade.profile_scope(body)
    if body.only_affected_users:
        scope = upgrade.affected_users(scope, Status.ARCHIVED, now)
    counts = await get_store(request).write(lambda tx: upgrade.downgrade(tx, scope, now))
    return DowngradeProfilesResponse(
        success=counts.restored > 0,
        profiles_restored=counts.restored,
        profiles_demoted=counts.demoted,
        message=f"Restored {counts.restored} profile(s)" if counts.restored else NOTHING_ARCHIVED,
    )


@router.direct("POST", "/api/downgrade_all_user_playbooks", KeyScope.REVIEW)
async def downgrade_all_user_playbooks(
    request: Request, body: DowngradeUserPlaybooksRequest
) -> DowngradeUserPlaybooksResponse:
    """The same as `downgrade_all_profiles`, for user playbooks of an agent version, of a type, or of both."""
    now, scope = _now(request), upgrade.user_playbook_scope(body)
    counts = await get_store(request).write(lambda tx: upgrade.downgrade(tx, scope, now))
    return DowngradeUserPlaybooksResponse(
        success=counts.restored > 0,
        user_playbooks_restored=counts.restored,
        user_playbooks_demoted=counts.demoted,
        message=f"Restored {counts.restored} user playbook(s)" if counts.restored else NOTHING_ARCHIVED,
    )


@router.get("/api/get_operation_status", response_model_exclude_none=True, openapi_extra=needs(KeyScope.READ))
async def get_operation_status(
    request: Request, service_name: Name = "profile_generation"
) -> GetOperationStatusResponse:
    """The progress of the newest operation of a service. `success` is false when there was none.

    An operation whose process gave no sign of life for five minutes counts as failed.
    """

    def latest(tx: Tx) -> OperationStatusInfo | None:
        operation = operations.latest(tx, service_name)
        return operations.describe(tx, operation, _now(request)) if operation else None

    status = await get_store(request).read(latest)
    msg = f"The operation is {status.status.value}" if status else f"There was no operation of {service_name!r}"
    return GetOperationStatusResponse(success=status is not None, operation_status=status, msg=msg)


@router.direct("POST", "/api/cancel_operation", KeyScope.REVIEW)
async def cancel_operation(request: Request, body: CancelOperationRequest) -> CancelOperationResponse:
    """Asks the running operation of one service, or of all, to stop. It stops after the current window."""
    now = _now(request)
    cancelled = await get_store(request).write(lambda tx: operations.cancel(tx, body.service_name, now))
    names = [operation.service_name for operation in cancelled]
    msg = f"Asked to stop: {', '.join(names)}" if names else "No operation is in progress"
    return CancelOperationResponse(cancelled_services=names, msg=msg)


class EventStream(StreamingResponse):
    """Server-sent events."""

    media_type = "text/event-stream"


@router.get("/api/operations/{operation_id}/events", response_class=EventStream, openapi_extra=needs(KeyScope.READ))
async def operation_events(request: Request, operation_id: str) -> EventStream:
    """The progress of an operation as server-sent events: one `progress` event now and one after each change.

    The data of each event is an `OperationStatusInfo` that names the last 20 users. The stream ends after the event
    with the final status. A 404 for an unknown operation.
    """
    mine = get_store(request)
    await mine.read(lambda tx: operations.get(tx, operation_id))

    async def pause() -> bool:
        await asyncio.sleep(POLL_SECONDS)
        return not request.app.state.stopping

    updates = operations.follow(mine, get_reflexio(request).clock, operation_id, pause)
    return EventStream(_events(updates), headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})


async def _events(updates: AsyncIterator[OperationStatusInfo | None]) -> AsyncIterator[str]:
    quiet = 0
    async for update in updates:
        quiet = 0 if update else quiet + 1
        if update:
            # In ASCII: some readers take characters other than line feeds for the end of a line.
            yield f"event: progress\ndata: {json.dumps(update.model_dump(mode='json', exclude_none=True))}\n\n"
        elif quiet % QUIET_POLLS == 0:
            yield ": still at it\n\n"


@router.get("/api/usage", response_model_exclude_none=True, openapi_extra=needs(KeyScope.READ))
async def usage(request: Request, days: Annotated[int, Query(ge=1, le=366)] = 30) -> UsageResponse:
    """Model calls and tokens by day (UTC), operation and model, newest first, and today's budget."""
    return await read_usage(get_store(request), get_reflexio(request).clock, days)


@router.get("/stall_state", response_model_exclude_none=True, openapi_extra=needs(KeyScope.READ))
async def stall_state(request: Request) -> StallStateResponse:
    """Whether learning waits because a provider refuses the key or the bill. Turns published meanwhile are kept."""
    return StallStateResponse.of(await get_store(request).read(stall.state))


@router.post("/stall_state/notified", openapi_extra=needs(KeyScope.PUBLISH))
async def stall_state_notified(request: Request) -> MarkNotifiedResponse:
    """Records that a person was notified of the stall. False when there is no stall."""
    return MarkNotifiedResponse(notified_in_cc=await get_store(request).write(stall.mark_notified))


def _params(body: BaseModel) -> Json:
    return body.model_dump(mode="json", exclude_none=True)


async def _rerun(request: Request, kind: Kind, scope: TurnScope, body: BaseModel) -> Json:
    """The fields of both rerun responses. `success` exists on the wire only; the service raises."""
    try:
        operation_id = await get_reflexio(request).reruns.begin(get_store(request), kind, scope, _params(body))
    except (Conflict, NotFound) as error:
        return {"success": False, "msg": str(error)}
    return {"msg": BEGUN, "operation_id": operation_id}


async def _manual(request: Request, kind: Kind, scope: TurnScope, body: BaseModel, name: str) -> Json:
    try:
        run = await get_reflexio(request).learning.run_manually(get_store(request), kind, scope, _params(body))
    except (Conflict, NotFound) as error:
        return {"success": False, "msg": str(error)}
    failed = f"; {run.failed_users} user(s) failed" if run.failed_users else ""
    return {"success": not run.failed_users, "msg": f"Generated {run.count}{failed}", name: run.count}


@router.direct("POST", "/api/rerun_profile_generation", KeyScope.REVIEW)
async def rerun_profile_generation(
    request: Request, body: RerunProfileGenerationRequest
) -> RerunProfileGenerationResponse:
    """Learns profiles again from all stored turns within the filters. The new ones are pending.

    They replace the pending profiles of the same users and source; current ones stay as they are. The response is
    immediate. `success` is false when no turn matches, or while another rerun is in progress.
    """
    return RerunProfileGenerationResponse(**await _rerun(request, Kind.PROFILE, rerun.profile_scope(body), body))


@router.direct("POST", "/api/rerun_playbook_generation", KeyScope.REVIEW)
async def rerun_playbook_generation(
    request: Request, body: RerunPlaybookGenerationRequest
) -> RerunPlaybookGenerationResponse:
    """The same as `rerun_profile_generation`, for user playbooks, from the turns of one agent version."""
    return RerunPlaybookGenerationResponse(
        **await _rerun(request, Kind.USER_PLAYBOOK, rerun.playbook_scope(body), body)
    )


@router.direct("POST", "/api/manual_profile_generation", KeyScope.REVIEW)
async def manual_profile_generation(
    request: Request, body: ManualProfileGenerationRequest
) -> ManualProfileGenerationResponse:
    """Learns now from the last `window_size` turns of each user within the filters, into the current profiles.

    Only extractors with `allow_manual_trigger` run. The response comes at the end and counts new and changed profiles.
    """
    return ManualProfileGenerationResponse(
        **await _manual(request, Kind.PROFILE, manual_profile_scope(body), body, "profiles_generated")
    )


@router.direct("POST", "/api/manual_playbook_generation", KeyScope.REVIEW)
async def manual_playbook_generation(
    request: Request, body: ManualPlaybookGenerationRequest
) -> ManualPlaybookGenerationResponse:
    """The same as `manual_profile_generation`, for user playbooks, from the turns of one agent version."""
    return ManualPlaybookGenerationResponse(
        **await _manual(request, Kind.USER_PLAYBOOK, manual_playbook_scope(body), body, "playbooks_generated")
    )
