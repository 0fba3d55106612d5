"""The caller's organisation: its configuration, and how much is stored."""

from typing import Any

from fastapi import Request

from reflexio.models.access import KeyScope
from reflexio.models.config import SetConfigResponse, StorageStatsResponse, WhoamiResponse
from reflexio.models.wire import Name
from reflexio.organisations import configuration, usage
from reflexio.server.direct import Router
from reflexio.server.routes import get_reflexio, get_store
from reflexio.server.scopes import ANY_KEY, get_caller, needs

router = Router(prefix="/api", tag="configuration")


@router.get("/get_config", openapi_extra=needs(KeyScope.READ))
async def get_config(request: Request) -> dict[str, Any]:
    """The whole configuration with secrets masked, including fields that are null.

    It also has `profile_extractor_config` and `user_playbook_extractor_config`, the first entry of each list under
    the names that published clients know, and `storage_config`, always null.
    """
    return await configuration.get(get_store(request))


@router.post("/set_config", response_model_exclude_none=True, openapi_extra=needs(KeyScope.ADMIN))
async def set_config(request: Request, changes: dict[str, Any]) -> SetConfigResponse:
    """Stores any part of the configuration. Absent fields keep their values; `null` or `[]` clears a field."""
    reflexio = get_reflexio(request)
    checks = (reflexio.check_config, reflexio.optimisation.check_assistant)
    return await configuration.change(get_store(request), reflexio.clock, changes, *checks)


@router.post("/update_config", response_model_exclude_none=True, openapi_extra=needs(KeyScope.ADMIN))
async def update_config(request: Request, changes: dict[str, Any]) -> SetConfigResponse:
    """The same as `set_config`."""
    return await set_config(request, changes)


@router.get("/whoami", openapi_extra=ANY_KEY)
async def whoami(request: Request) -> WhoamiResponse:
    """The organisation of the key, its scopes and owner, and where the data is stored."""
    return usage.whoami(get_reflexio(request).database, get_caller(request))


@router.get("/storage_stats", response_model_exclude_none=True, openapi_extra=needs(KeyScope.READ))
async def storage_stats(request: Request, user_id: Name) -> StorageStatsResponse:
    """How much is stored for one user."""
    return await usage.storage_stats(get_store(request), get_reflexio(request).clock, user_id)
