import gc
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import create_model

from reflexio.errors import InvalidRequest, ProviderRefused, StorageCorrupt
from reflexio.server.loading import loading
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


def test_a_start_builds_no_model_and_loads_no_dialect_that_it_does_not_use() -> None:
    code = (
        "import sys\n"
        "from reflexio.server.loading import loading\n"
        "with loading():\n"
        "    import reflexio.server.run, reflexio.storage.sqlite\n"
        "from fastapi.openapi.models import OpenAPI\n"
        "from reflexio.models.interaction import PublishRequest\n"
        "print(OpenAPI.__pydantic_complete__, PublishRequest.__pydantic_complete__)\n"
        "print({'sqlalchemy.dialects.postgresql', 'websockets'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split("\n")[:2] == ["False False", "set()"]


def test_whatever_is_loaded_is_not_looked_through_for_garbage() -> None:
    before = gc.get_freeze_count()
    try:
        with loading():
            kept: list[list[int]] = [[] for _ in range(1000)]
            assert not gc.isenabled()
        assert gc.isenabled()
        assert gc.get_freeze_count() >= before + len(kept)
    finally:
        gc.unfreeze()


def test_a_model_made_after_loading_is_built_at_once() -> None:
    with loading():
        early = create_model("Early", name=(str, ...))
    late = create_model("Late", name=(str, ...))
    assert (early.__pydantic_complete__, late.__pydantic_complete__) == (False, True)
    assert early.model_validate({"name": "Ada"}).model_dump() == {"name": "Ada"}
