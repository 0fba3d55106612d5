"""The configuration of the caller's organisation, and what is stored for it."""

from typing import Any

from fastapi import APIRouter, Request

from reflexio.models.config import SetConfigResponse, StorageStatsResponse, WhoamiResponse
from reflexio.models.shape import Name
from reflexio.organisations import configuration, usage
from reflexio.server.body import JsonRoute
from reflexio.server.parts import house, store

router = APIRouter(prefix="/api", tags=["configuration"], route_class=JsonRoute)


@router.get("/get_config")
async def get_config(request: Request) -> dict[str, Any]:
    """The whole configuration, secrets masked, with fields that are null.

    It also has `profile_extractor_config` and `user_playbook_extractor_config`, the first entry of each list under
    the names that published clients know, and `storage_config`, always null.
    """
    return await configuration.get(store(request))


@router.post("/set_config", response_model_exclude_none=True)
async def set_config(request: Request, changes: dict[str, Any]) -> SetConfigResponse:
    """Stores any part of the configuration. What is absent keeps its value, `null` or `[]` clears it."""
    return await configuration.change(store(request), house(request).clock, changes)


@router.post("/update_config", response_model_exclude_none=True)
async def update_config(request: Request, changes: dict[str, Any]) -> SetConfigResponse:
    """The same as `set_config`, body and all."""
    return await configuration.change(store(request), house(request).clock, changes)


@router.get("/whoami")
async def whoami(request: Request) -> WhoamiResponse:
    """For which organisation the key speaks, and where its data is."""
    return usage.whoami(house(request).database, store(request))


@router.get("/storage_stats", response_model_exclude_none=True)
async def storage_stats(request: Request, user_id: Name) -> StorageStatsResponse:
    """How much is stored of one user."""
    return await usage.storage_stats(store(request), house(request).clock, user_id)
