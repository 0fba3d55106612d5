# Generated from client/aio/settings.py by scripts/make_sync_client.py. Change that file and run `make format`.
"""The organisation's configuration, and what is stored for it."""

from typing import Any

from reflexio.client.sync.calls import Calls
from reflexio.models.config import Config, SetConfigResponse, StorageStatsResponse, WhoamiResponse


class SettingCalls(Calls):
    """Configuration and state."""

    def get_config(self) -> Config:
        """The learning settings. Change attributes and hand it to `set_config`."""
        return self._call("GET", "/api/get_config", Config)

    def set_config(self, config: Config | dict[str, Any]) -> SetConfigResponse:
        """Stores settings. What is not named keeps its value; None or [] clears it."""
        return self.update_config(plain(config))

    def update_config(self, partial: dict[str, Any]) -> SetConfigResponse:
        """Stores the named settings and leaves all others as they are."""
        if not isinstance(partial, dict):
            raise TypeError("update_config takes a dict of settings; set_config takes a Config")
        return self._call("POST", "/api/set_config", SetConfigResponse, plain(partial))

    def whoami(self) -> WhoamiResponse:
        """Which organisation this client's key speaks for, and where its data is."""
        return self._call("GET", "/api/whoami", WhoamiResponse)

    def storage_stats(self, user_id: str) -> StorageStatsResponse:
        """How much is stored of one user."""
        return self._call("GET", "/api/storage_stats", StorageStatsResponse, params={"user_id": user_id})


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
