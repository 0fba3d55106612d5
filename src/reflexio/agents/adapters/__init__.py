"""Agents of other frameworks: as callables for `reflexion()`, and with the memory of a conversation.

Each adapter imports its framework, and no other one; a missing framework is reported with the command that installs it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reflexio.agents.adapters.langgraph import from_langgraph as from_langgraph
    from reflexio.agents.adapters.langgraph_memory import MemoryGraph as MemoryGraph
    from reflexio.agents.adapters.openai_agents import from_openai_agents as from_openai_agents
    from reflexio.agents.adapters.openai_agents_memory import memory_run_options as memory_run_options
    from reflexio.agents.adapters.pydantic_ai import from_pydantic_ai as from_pydantic_ai
    from reflexio.agents.adapters.pydantic_ai_memory import MemoryCapability as MemoryCapability

_MODULES = {
    "MemoryCapability": "pydantic_ai_memory",
    "MemoryGraph": "langgraph_memory",
    "from_langgraph": "langgraph",
    "from_openai_agents": "openai_agents",
    "from_pydantic_ai": "pydantic_ai",
    "memory_run_options": "openai_agents_memory",
}

__all__ = sorted(_MODULES)  # noqa: PLE0605  one list, not two


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'reflexio.agents.adapters' has no attribute {name!r}")
    try:
        return getattr(import_module(f"reflexio.agents.adapters.{_MODULES[name]}"), name)
    except ModuleNotFoundError as error:
        extra = _MODULES[name].removesuffix("_memory").replace("_", "-")
        raise ImportError(f"{name} needs its framework ({error}): pip install 'reflexio-learn[{extra}]'") from error


def __dir__() -> list[str]:
    return [*globals(), *_MODULES]
