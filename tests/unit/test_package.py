"""What `import reflexio` offers, and what it costs."""

import inspect
import json
import subprocess
import sys
from typing import Any

import pytest

import reflexio
from reflexio.client.aio import AsyncReflexioClient
from reflexio.client.sync import ReflexioClient

# Not rich: httpx imports it by itself where it is installed.
SERVER_PACKAGES = {"sqlalchemy", "alembic", "fastapi", "starlette", "uvicorn", "typer", "numpy", "orjson", "uvloop"}


def imported_by(statement: str) -> set[str]:
    """Top-level packages that a fresh interpreter holds after a statement."""
    code = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {module.partition(".")[0] for module in json.loads(done.stdout)}


def test_the_public_names() -> None:
    assert list(reflexio.__all__) == [
        "Agent",
        "AgentPlaybook",
        "AgentSession",
        "Architecture",
        "AsyncReflexioClient",
        "Budget",
        "Chunk",
        "Citation",
        "Config",
        "ConversationMemory",
        "ConversationTurn",
        "Dependencies",
        "Evaluation",
        "Event",
        "InMemoryMemory",
        "InMemoryVectorStore",
        "Interaction",
        "InteractionData",
        "Judge",
        "Lesson",
        "PlaybookAggregatorConfig",
        "PlaybookConfig",
        "PlaybookOptimizerConfig",
        "PlaybookStatus",
        "PostgresVectorStore",
        "ProfileExtractorConfig",
        "ProfileTimeToLive",
        "ReAct",
        "ReflexioClient",
        "ReflexioError",
        "Reflexion",
        "SearchResult",
        "Status",
        "ToolUseConfig",
        "ToolUsed",
        "UnitTests",
        "UserActionType",
        "UserPlaybook",
        "UserProfile",
        "VectorStore",
        "memory",
        "reflexion",
        "reflexion_stream",
        "reflexion_sync",
        "reflexive",
    ]
    for each in reflexio.__all__:
        assert getattr(reflexio, each).__name__ == each
        assert each in dir(reflexio)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = reflexio.Nothing


def test_importing_the_package_imports_next_to_nothing() -> None:
    assert not imported_by("import reflexio") & {"httpx", "pydantic", *SERVER_PACKAGES}


def test_importing_the_client_imports_no_server_package() -> None:
    found = imported_by("from reflexio import ReflexioClient, AsyncReflexioClient, Config")
    assert "httpx" in found
    assert not found & SERVER_PACKAGES


def public_methods(kind: type) -> dict[str, Any]:
    return {name: each for name, each in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}


def test_both_clients_have_the_same_methods_and_signatures() -> None:
    plain, asynchronous = public_methods(ReflexioClient), public_methods(AsyncReflexioClient)
    assert plain.keys() == asynchronous.keys()
    for name, method in plain.items():
        wanted, found = inspect.signature(method), inspect.signature(asynchronous[name])
        assert list(wanted.parameters.values()) == list(found.parameters.values()), name
        assert _plain(wanted.return_annotation) == _plain(found.return_annotation), name
        assert inspect.getdoc(method) == inspect.getdoc(asynchronous[name])
        assert inspect.iscoroutinefunction(method) == name.endswith("_async")
        is_stream = name in ("follow_operation", "export_organisation")
        assert inspect.isasyncgenfunction(asynchronous[name]) == is_stream
        assert inspect.iscoroutinefunction(asynchronous[name]) or is_stream or name == "for_session"


def _plain(annotation: Any) -> str:
    return str(annotation).replace("client.aio", "client.sync").replace("AsyncIterator", "Iterator")


def test_the_calls_of_the_foundation_exist() -> None:
    wanted = {
        "publish_interaction",
        "for_session",
        "finalize_session",
        "get_interactions",
        "get_all_interactions",
        "get_requests",
        "delete_interaction",
        "delete_request",
        "delete_session",
        "delete_requests_by_ids",
        "delete_all_interactions",
        "get_config",
        "set_config",
        "update_config",
        "whoami",
        "storage_stats",
        "clear_user_data",
        "get_learning_status",
    }
    assert wanted <= public_methods(ReflexioClient).keys()


def test_the_command_line_without_the_server_extra_names_the_remedy() -> None:
    code = "import sys; sys.modules['typer'] = None; from reflexio.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'reflexio-learn[server]'" in done.stderr
    assert "Traceback" not in done.stderr
