"""Reflexio: the learning layer for AI agents.

>>> from reflexio import ReflexioClient
>>> client = ReflexioClient()  # doctest: +SKIP

Names are imported when they are first used, so that `import reflexio` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reflexio.client.aio import AsyncReflexioClient as AsyncReflexioClient
    from reflexio.client.sync import ReflexioClient as ReflexioClient
    from reflexio.errors import ReflexioError as ReflexioError
    from reflexio.models.config import Config as Config
    from reflexio.models.config import PlaybookAggregatorConfig as PlaybookAggregatorConfig
    from reflexio.models.config import PlaybookConfig as PlaybookConfig
    from reflexio.models.config import PlaybookOptimizerConfig as PlaybookOptimizerConfig
    from reflexio.models.config import ProfileExtractorConfig as ProfileExtractorConfig
    from reflexio.models.interaction import InteractionData as InteractionData
    from reflexio.models.interaction import ToolUsed as ToolUsed
    from reflexio.models.interaction import UserActionType as UserActionType
    from reflexio.models.status import PlaybookStatus as PlaybookStatus
    from reflexio.models.status import ProfileTimeToLive as ProfileTimeToLive
    from reflexio.models.status import Status as Status

_HOMES = {
    "AsyncReflexioClient": "client.aio",
    "ReflexioClient": "client.sync",
    "ReflexioError": "errors",
    "Config": "models.config",
    "PlaybookAggregatorConfig": "models.config",
    "PlaybookConfig": "models.config",
    "PlaybookOptimizerConfig": "models.config",
    "ProfileExtractorConfig": "models.config",
    "InteractionData": "models.interaction",
    "ToolUsed": "models.interaction",
    "UserActionType": "models.interaction",
    "PlaybookStatus": "models.status",
    "ProfileTimeToLive": "models.status",
    "Status": "models.status",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605  one list, not two


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'reflexio' has no attribute {name!r}")
    value = getattr(import_module(f"reflexio.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]
