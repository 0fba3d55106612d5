"""Learning from stored turns once more."""

from fastapi import APIRouter, Request
from pydantic import BaseModel

from reflexio.errors import Conflict, NotFound
from reflexio.learning import rerun
from reflexio.learning.service import manual_playbook_scope, manual_profile_scope
from reflexio.models.generation import (
    ManualPlaybookGenerationRequest,
    ManualPlaybookGenerationResponse,
    ManualProfileGenerationRequest,
    ManualProfileGenerationResponse,
    RerunPlaybookGenerationRequest,
    RerunPlaybookGenerationResponse,
    RerunProfileGenerationRequest,
    RerunProfileGenerationResponse,
)
from reflexio.models.learning import Kind
from reflexio.ports.storage import TurnScope
from reflexio.ports.work import Json
from reflexio.server.body import JsonRoute
from reflexio.server.parts import house, store

router = APIRouter(prefix="/api", tags=["operations"], route_class=JsonRoute)
BEGUN = "Begun; follow it by its operation_id."


def _params(asked: BaseModel) -> Json:
    return asked.model_dump(mode="json", exclude_none=True)


async def _rerun(request: Request, kind: Kind, scope: TurnScope, asked: BaseModel) -> Json:
    """The answer of both reruns. What the wire tells with `success`, no other caller of the verb needs."""
    try:
        begun = await house(request).reruns.begin(store(request), kind, scope, _params(asked))
    except (Conflict, NotFound) as refused:
        return {"success": False, "msg": str(refused)}
    return {"msg": BEGUN, "operation_id": begun}


async def _manual(request: Request, kind: Kind, scope: TurnScope, asked: BaseModel, name: str) -> Json:
    try:
        made = await house(request).learning.run_manually(store(request), kind, scope, _params(asked))
    except (Conflict, NotFound) as refused:
        return {"success": False, "msg": str(refused)}
    failed = f"; {made.failed_users} user(s) failed" if made.failed_users else ""
    return {"success": not made.failed_users, "msg": f"Generated {made.count}{failed}", name: made.count}


@router.post("/rerun_profile_generation", response_model_exclude_none=True)
async def rerun_profile_generation(
    request: Request, asked: RerunProfileGenerationRequest
) -> RerunProfileGenerationResponse:
    """Learns profiles from all stored turns within the filters once more, as pending ones.

    They take the place of the pending profiles of the same users and source; current ones stay as they are.
    Answers at once. `success` is false when no turn matches, or while another one is in progress.
    """
    made = await _rerun(request, Kind.PROFILE, rerun.profile_scope(asked), asked)
    return RerunProfileGenerationResponse(**made)


@router.post("/rerun_playbook_generation", response_model_exclude_none=True)
async def rerun_playbook_generation(
    request: Request, asked: RerunPlaybookGenerationRequest
) -> RerunPlaybookGenerationResponse:
    """The same for user playbooks, from the turns of one agent version."""
    made = await _rerun(request, Kind.USER_PLAYBOOK, rerun.playbook_scope(asked), asked)
    return RerunPlaybookGenerationResponse(**made)


@router.post("/manual_profile_generation", response_model_exclude_none=True)
async def manual_profile_generation(
    request: Request, asked: ManualProfileGenerationRequest
) -> ManualProfileGenerationResponse:
    """Learns from the last `window_size` turns of each user within the filters now, into what is current.

    Only with extractors that have `allow_manual_trigger`. Answers when it is done, with what is new or changed.
    """
    made = await _manual(request, Kind.PROFILE, manual_profile_scope(asked), asked, "profiles_generated")
    return ManualProfileGenerationResponse(**made)


@router.post("/manual_playbook_generation", response_model_exclude_none=True)
async def manual_playbook_generation(
    request: Request, asked: ManualPlaybookGenerationRequest
) -> ManualPlaybookGenerationResponse:
    """The same for user playbooks, from the turns of one agent version."""
    made = await _manual(request, Kind.USER_PLAYBOOK, manual_playbook_scope(asked), asked, "playbooks_generated")
    return ManualPlaybookGenerationResponse(**made)
