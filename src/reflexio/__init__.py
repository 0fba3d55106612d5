"""Reflexio: the learning layer for AI agents.

>>> from reflexio import ReflexioClient
>>> client = ReflexioClient()  # doctest: +SKIP

Names are imported when they are first used, so that `import reflexio` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

DISTRIBUTION = "reflexio-learn"
"""The name under which this package is installed."""

if TYPE_CHECKING:
    __version__: str
    from reflexio.agents.agent import Agent as Agent
    from reflexio.agents.api import reflexion as reflexion
    from reflexio.agents.api import reflexion_stream as reflexion_stream
    from reflexio.agents.api import reflexion_sync as reflexion_sync
    from reflexio.agents.api import reflexive as reflexive
    from reflexio.agents.architecture import AgentSession as AgentSession
    from reflexio.agents.architecture import Architecture as Architecture
    from reflexio.agents.architecture import Dependencies as Dependencies
    from reflexio.agents.architecture import Event as Event
    from reflexio.agents.architecture import ReAct as ReAct
    from reflexio.agents.attempt import Evaluation as Evaluation
    from reflexio.agents.attempt import Lesson as Lesson
    from reflexio.agents.budget import Budget as Budget
    from reflexio.agents.conversation_memory import ConversationMemory as ConversationMemory
    from reflexio.agents.conversation_memory import memory as memory
    from reflexio.agents.evaluators.judge import Judge as Judge
    from reflexio.agents.evaluators.unit_tests import UnitTests as UnitTests
    from reflexio.agents.memory import InMemoryMemory as InMemoryMemory
    from reflexio.agents.reflexion_architecture import Reflexion as Reflexion
    from reflexio.agents.vectors.memory import InMemoryVectorStore as InMemoryVectorStore
    from reflexio.agents.vectors.postgres import PostgresVectorStore as PostgresVectorStore
    from reflexio.agents.vectors.store import Chunk as Chunk
    from reflexio.agents.vectors.store import SearchResult as SearchResult
    from reflexio.agents.vectors.store import VectorStore as VectorStore
    from reflexio.client.aio import AsyncReflexioClient as AsyncReflexioClient
    from reflexio.client.sync import ReflexioClient as ReflexioClient
    from reflexio.errors import ReflexioError as ReflexioError
    from reflexio.models.config import Config as Config
    from reflexio.models.config import PlaybookAggregatorConfig as PlaybookAggregatorConfig
    from reflexio.models.config import PlaybookConfig as PlaybookConfig
    from reflexio.models.config import PlaybookOptimizerConfig as PlaybookOptimizerConfig
    from reflexio.models.config import ProfileExtractorConfig as ProfileExtractorConfig
    from reflexio.models.config import ToolUseConfig as ToolUseConfig
    from reflexio.models.interaction import Citation as Citation
    from reflexio.models.interaction import Interaction as Interaction
    from reflexio.models.interaction import InteractionData as InteractionData
    from reflexio.models.interaction import ToolUsed as ToolUsed
    from reflexio.models.interaction import UserActionType as UserActionType
    from reflexio.models.learning import PlaybookStatus as PlaybookStatus
    from reflexio.models.learning import ProfileTimeToLive as ProfileTimeToLive
    from reflexio.models.learning import Status as Status
    from reflexio.models.playbook import AgentPlaybook as AgentPlaybook
    from reflexio.models.playbook import UserPlaybook as UserPlaybook
    from reflexio.models.profile import UserProfile as UserProfile
    from reflexio.models.search import ConversationTurn as ConversationTurn

_NAMES = {
    "agents.agent": "Agent",
    "agents.api": "reflexion reflexion_stream reflexion_sync reflexive",
    "agents.architecture": "AgentSession Architecture Dependencies Event ReAct",
    "agents.attempt": "Evaluation Lesson",
    "agents.budget": "Budget",
    "agents.conversation_memory": "ConversationMemory memory",
    "agents.evaluators.judge": "Judge",
    "agents.evaluators.unit_tests": "UnitTests",
    "agents.memory": "InMemoryMemory",
    "agents.reflexion_architecture": "Reflexion",
    "agents.vectors.memory": "InMemoryVectorStore",
    "agents.vectors.postgres": "PostgresVectorStore",
    "agents.vectors.store": "Chunk SearchResult VectorStore",
    "client.aio": "AsyncReflexioClient",
    "client.sync": "ReflexioClient",
    "errors": "ReflexioError",
    "models.config": "Config PlaybookAggregatorConfig PlaybookConfig PlaybookOptimizerConfig ProfileExtractorConfig "
    "ToolUseConfig",
    "models.interaction": "Citation Interaction InteractionData ToolUsed UserActionType",
    "models.learning": "PlaybookStatus ProfileTimeToLive Status",
    "models.playbook": "AgentPlaybook UserPlaybook",
    "models.profile": "UserProfile",
    "models.search": "ConversationTurn",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_MODULES)  # noqa: PLE0605  one list, not two


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version(DISTRIBUTION)
    if name not in _MODULES:
        raise AttributeError(f"module 'reflexio' has no attribute {name!r}")
    value = getattr(import_module(f"reflexio.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *_MODULES]
