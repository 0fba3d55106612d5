import subprocess
import sys
from pathlib import Path

import pytest

from reflexio.errors import InvalidRequest, ProviderRefused, StorageCorrupt
from reflexio.server.run import serve
from reflexio.settings import Settings


def test_a_damaged_database_stops_the_start_with_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "reflexio.db").write_text("This is a letter, and no database at all. " * 50)
    with pytest.raises(StorageCorrupt, match="restore a backup"):
        serve(Settings(data=tmp_path, port=0))


def test_an_embedder_without_its_key_stops_the_start_with_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(ProviderRefused, match="OPENAI_API_KEY"):
        serve(Settings(data=tmp_path, port=0, embedder="openai:text-embedding-3-small"))


def test_an_embedder_that_nobody_knows_stops_the_start_with_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="'local' or 'openai:<model>'"):
        serve(Settings(data=tmp_path, port=0, embedder="lokal"))


@pytest.mark.slow
def test_a_start_builds_no_model_and_loads_no_dialect_that_it_does_not_use() -> None:
    code = (
        "import sys\n"
        "import reflexio.server.run, reflexio.storage.sqlite\n"
        "from reflexio.models.interaction import PublishRequest\n"
        "print(PublishRequest.__pydantic_complete__)\n"
        "print({'sqlalchemy.dialects.postgresql', 'websockets'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["False", "set()"]


@pytest.mark.slow
def test_the_server_changes_no_global_state_of_pydantic_or_the_interpreter() -> None:
    state = (
        "def state():\n"
        "    return (gc.isenabled(), gc.get_freeze_count(), gc.get_threshold(), sys.getswitchinterval(),\n"
        "            list(warnings.filters), dict(pydantic.BaseModel.model_config))\n"
    )
    code = (
        "import gc, sys, warnings\nimport fastapi, numpy, pydantic, sqlalchemy, typer, uvicorn\n"
        f"{state}before = state()\n"
        "import reflexio.cli.app, reflexio.server.run, reflexio.storage.sqlite\n"
        "from reflexio.settings import Settings\n"
        "reflexio.server.app.create_app(Settings()).openapi()\n"
        "assert state() == before, (before, state())"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
