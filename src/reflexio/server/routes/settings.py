"""The configuration of the caller's organisation, and what is stored for it."""

from typing import Any

from fastapi import APIRouter

from reflexio.models.config import SetConfigResponse, StorageStatsResponse, WhoamiResponse
from reflexio.models.shape import Name
from reflexio.server.body import JsonRoute
from reflexio.server.parts import House, OrgStore
from reflexio.usecases import configure, stats

router = APIRouter(prefix="/api", tags=["configuration"], route_class=JsonRoute)


@router.get("/get_config")
async def get_config(store: OrgStore) -> dict[str, Any]:
    return await configure.get(store)


@router.post("/set_config", response_model_exclude_none=True)
async def set_config(house: House, store: OrgStore, changes: dict[str, Any]) -> SetConfigResponse:
    return await configure.change(store, house.clock, changes)


@router.post("/update_config", response_model_exclude_none=True)
async def update_config(house: House, store: OrgStore, changes: dict[str, Any]) -> SetConfigResponse:
    return await configure.change(store, house.clock, changes)


@router.get("/whoami")
async def whoami(house: House, store: OrgStore) -> WhoamiResponse:
    return stats.whoami(house.database, store)


@router.get("/storage_stats", response_model_exclude_none=True)
async def storage_stats(store: OrgStore, user_id: Name) -> StorageStatsResponse:
    return await stats.storage(store, user_id)
