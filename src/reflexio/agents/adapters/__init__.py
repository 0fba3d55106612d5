"""Agents of other frameworks as callables for `reflexion()`. Each adapter imports its framework, and no other one;
a missing framework is reported with the command that installs it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reflexio.agents.adapters.langgraph import from_langgraph as from_langgraph
    from reflexio.agents.adapters.openai_agents import from_openai_agents as from_openai_agents
    from reflexio.agents.adapters.pydantic_ai import from_pydantic_ai as from_pydantic_ai

_MODULES = {f"from_{module}": module for module in ("langgraph", "openai_agents", "pydantic_ai")}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'reflexio.agents.adapters' has no attribute {name!r}")
    try:
        return getattr(import_module(f"reflexio.agents.adapters.{_MODULES[name]}"), name)
    except ModuleNotFoundError as error:
        extra = _MODULES[name].replace("_", "-")
        raise ImportError(f"{name} needs its framework ({error}): pip install 'reflexio-learn[{extra}]'") from error


def __dir__() -> list[str]:
    return [*globals(), *_MODULES]
