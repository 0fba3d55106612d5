import sys

import pytest

from reflexio.agents import adapters
from tests.unit.test_package import imported_by

FRAMEWORKS = {
    "MemoryCapability": "pydantic_ai",
    "MemoryGraph": "langgraph",
    "from_langgraph": "langgraph",
    "from_openai_agents": "agents",
    "from_pydantic_ai": "pydantic_ai",
    "memory_run_options": "agents",
}


def test_these_are_all() -> None:
    assert list(adapters.__all__) == sorted(FRAMEWORKS)


def test_the_room_imports_no_framework() -> None:
    assert not imported_by("import reflexio.agents.adapters") & set(FRAMEWORKS.values())


@pytest.mark.parametrize("name", FRAMEWORKS)
@pytest.mark.slow
def test_an_adapter_imports_its_own_framework_and_no_other(name: str) -> None:
    assert name in dir(adapters)
    found = imported_by(f"from reflexio.agents.adapters import {name}") & set(FRAMEWORKS.values())
    assert found == {FRAMEWORKS[name]}


@pytest.mark.parametrize(("name", "module"), [("from_langgraph", "langgraph"), ("MemoryGraph", "langgraph_memory")])
def test_a_framework_that_is_missing_is_named_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, name: str, module: str
) -> None:
    monkeypatch.delitem(sys.modules, f"reflexio.agents.adapters.{module}", raising=False)
    monkeypatch.setitem(sys.modules, "langgraph.pregel", None)
    with pytest.raises(ImportError, match=r"pip install 'reflexio-learn\[langgraph\]'"):
        _ = getattr(adapters, name)


def test_there_are_no_others() -> None:
    with pytest.raises(AttributeError, match="from_nothing"):
        _ = adapters.from_nothing
