"""The configuration of the caller's organisation, and what is stored for it."""

from typing import Any

from fastapi import APIRouter, Request

from reflexio.models.config import SetConfigResponse, StorageStatsResponse, WhoamiResponse
from reflexio.models.shape import Name
from reflexio.server.body import JsonRoute
from reflexio.server.parts import house, store
from reflexio.usecases import configure, stats

router = APIRouter(prefix="/api", tags=["configuration"], route_class=JsonRoute)


@router.get("/get_config")
async def get_config(request: Request) -> dict[str, Any]:
    return await configure.get(store(request))


@router.post("/set_config", response_model_exclude_none=True)
async def set_config(request: Request, changes: dict[str, Any]) -> SetConfigResponse:
    return await configure.change(store(request), house(request).clock, changes)


@router.post("/update_config", response_model_exclude_none=True)
async def update_config(request: Request, changes: dict[str, Any]) -> SetConfigResponse:
    return await configure.change(store(request), house(request).clock, changes)


@router.get("/whoami")
async def whoami(request: Request) -> WhoamiResponse:
    return stats.whoami(house(request).database, store(request))


@router.get("/storage_stats", response_model_exclude_none=True)
async def storage_stats(request: Request, user_id: Name) -> StorageStatsResponse:
    return await stats.storage(store(request), house(request).clock, user_id)
