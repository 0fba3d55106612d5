"""What `reflexio.agents` offers, what importing it costs, and whether its examples are true."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

from reflexio import agents
from tests.unit.test_package import SERVER_PACKAGES, imported_by

FOLDER = Path(agents.__path__[0])
WITH_EXAMPLES = [
    ".".join(("reflexio", "agents", *path.relative_to(FOLDER).with_suffix("").parts)).removesuffix(".__init__")
    for path in sorted(FOLDER.rglob("*.py"))
    if ">>> " in path.read_text()
]


def test_every_name_is_there() -> None:
    for name in agents.__all__:
        assert getattr(agents, name) is not None
        assert name in dir(agents)
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = agents.Nothing


def test_importing_the_room_imports_next_to_nothing() -> None:
    assert not imported_by("import reflexio.agents") & {"httpx", "pydantic", *SERVER_PACKAGES}


def test_agents_need_neither_the_server_nor_a_models_client() -> None:
    found = imported_by("from reflexio.agents import Agent, Judge, Reflexion, ScriptedModel, UnitTests, reflexion")
    assert not found & {"sqlalchemy", "alembic", "fastapi", "starlette", "uvicorn", "dbos", "pydantic_ai", "openai"}


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_examples_in_docstrings_are_true(module: str) -> None:
    assert doctest.testmod(import_module(module)).failed == 0
