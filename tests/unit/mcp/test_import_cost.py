"""What MCP costs those who do not use it, and what it needs where only the coding agent runs."""

import json
import subprocess
import sys

import pytest

SERVER_ONLY = ("sqlalchemy", "alembic", "fastapi", "numpy", "orjson", "uvloop", "httptools", "pydantic_ai", "gepa")
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


def test_a_starting_server_does_not_import_the_sdk() -> None:
    code = "import sys, reflexio.server.app; print(*(name in sys.modules for name in ('mcp', 'mcp_types', 'httpx')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"] * 3


@pytest.mark.slow
def test_stdio_runs_without_the_packages_of_a_server() -> None:
    blocked = f"import sys; sys.modules.update(dict.fromkeys({SERVER_ONLY!r}))"
    code = f"{blocked}; sys.argv = ['reflexio', 'mcp']; from reflexio.cli import main; main()"
    sent = json.dumps(INITIALIZE) + "\n"
    done = subprocess.run([sys.executable, "-c", code], input=sent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[0])["result"]["serverInfo"]["name"] == "reflexio"


def test_without_the_sdk_the_command_names_the_remedy() -> None:
    code = (
        "import sys; sys.modules['mcp'] = None; sys.argv = ['reflexio', 'mcp']; from reflexio.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'reflexio-learn[mcp]'" in done.stderr
    assert "Traceback" not in done.stderr
