"""The organisation's configuration, and what is stored for it."""

from typing import Any

from reflexio.client.aio.calls import Calls
from reflexio.models.config import Config, SetConfigResponse, StorageStatsResponse, WhoamiResponse


class SettingCalls(Calls):
    """Configuration and state."""

    async def get_config(self) -> Config:
        """The learning settings. Change attributes and hand it to `set_config`."""
        return await self._call("GET", "/api/get_config", Config)

    async def set_config(self, config: Config | dict[str, Any]) -> SetConfigResponse:
        """Stores settings. What is not named keeps its value; None or [] clears it."""
        return await self.update_config(plain(config))

    async def update_config(self, partial: dict[str, Any]) -> SetConfigResponse:
        """Stores the named settings and leaves all others as they are."""
        if not isinstance(partial, dict):
            raise TypeError("update_config takes a dict of settings; set_config takes a Config")
        return await self._call("POST", "/api/set_config", SetConfigResponse, plain(partial))

    async def whoami(self) -> WhoamiResponse:
        """Which organisation this client's key speaks for, and where its data is."""
        return await self._call("GET", "/api/whoami", WhoamiResponse)

    async def storage_stats(self, user_id: str) -> StorageStatsResponse:
        """How much is stored of one user."""
        return await self._call("GET", "/api/storage_stats", StorageStatsResponse, params={"user_id": user_id})


def plain(value: Any) -> Any:
    """Settings inside dicts and lists, as JSON with their secrets: they are on their way to be kept."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if hasattr(value, "model_dump"):
        # Without warnings: dicts that were put into a list of settings are read by the server.
        return value.model_dump(mode="json", exclude_unset=True, context={"reveal": True}, warnings=False)
    return value
