"""The generated reference pages are up to date, and the script reports when they are not."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reflexio.server.api_document import WORDS
from tests.docs.markdown import ROOT, page

REFERENCE = ROOT / "docs" / "reference"


def _run(*arguments: str | Path) -> str:
    """Runs the script and returns what it reports."""
    script = ROOT / "scripts" / "make_reference.py"
    completed = subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, check=False)
    assert bool(completed.returncode) == bool(completed.stderr), completed.stderr
    return completed.stderr


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(REFERENCE, tmp_path / "reference"))


def _replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_the_pages_are_up_to_date() -> None:
    assert _run("--check") == ""


def test_a_name_without_a_description_is_reported(copy: Path) -> None:
    words = Path(shutil.copy(WORDS, copy))
    _replace(words, "rationale =", "reasoning =")
    report = _run("--check", copy, words)
    assert "NewUserPlaybook.rationale has no meaning" in report
    assert "everywhere.reasoning is nowhere" in report


def test_a_changed_default_is_reported_and_repaired(copy: Path) -> None:
    _replace(copy / "http.md", "| `top_k` | integer, 1 to 10,000 | `5` |", "| `top_k` | integer, 1 to 10,000 | `7` |")
    assert "http.md is not what the code says" in _run("--check", copy)
    assert _run(copy) == ""
    assert (copy / "http.md").read_text() == (REFERENCE / "http.md").read_text()


def test_the_pages_name_routes_models_and_methods_with_limits_and_links() -> None:
    http, client = page("docs/reference/http.md").sections(), page("docs/reference/client.md").sections()
    assert "[PublishRequest](#publishrequest)" in http["POST /api/publish_interaction"]
    assert "| `user_id` | string, 1 to 255 | required |" in http["PublishRequest"]
    assert '| `search_mode` | `vector`, `fts`, `hybrid` | `"hybrid"` |' in http["UnifiedSearchRequest"]
    assert "Returns [ContextResponse](http.md#contextresponse)." in client["get_context"]
    assert "| `max_tokens` | int | `None` |" in client["get_context"]


def test_limits_are_written_out_and_defaults_are_values() -> None:
    text = page("docs/reference/http.md").path.read_text()
    assert "e+" not in text
    assert "| `tools_used` | list of [ToolUsed](#toolused), up to 1,000 | `[]` |" in text
    assert "| `created_at` | integer, up to 253,402,300,799 | now |" in text
