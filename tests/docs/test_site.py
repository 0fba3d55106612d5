"""The documentation site builds without a warning, loads nothing from elsewhere, and shows every page."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from scripts.make_llms_txt import full_text, index, pages, project

import reflexio
from tests.docs.markdown import ROOT, page

DOCS = ROOT / "docs"
IN_NAVIGATION = [path for _, path in pages(project()["nav"])]
FOREIGN = re.compile(r"""(?:src|href)=["']?(https?://[^"' >]+)[^>]*""")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    shutil.copytree(DOCS, folder / "docs")
    shutil.copy(ROOT / "zensical.toml", folder)
    command = [str(Path(sys.executable).with_name("zensical")), "build", "--strict"]
    completed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return folder / "site"


@pytest.mark.parametrize("path", IN_NAVIGATION)
def test_every_page_of_the_navigation_is_built(path: str, site: Path) -> None:
    assert (site / path).with_suffix(".html").exists() or (site / path).with_name("index.html").exists()


def test_every_page_is_in_the_navigation() -> None:
    all_pages = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md") if not path.name[:4].isdigit()}
    assert set(IN_NAVIGATION) == all_pages
    assert len(IN_NAVIGATION) == len(all_pages)


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        loaded = [
            match[1]
            for match in FOREIGN.finditer(path.read_text())
            if not match.string[: match.start()].rpartition("<")[2].startswith("a ")
        ]
        assert loaded == [], path.name


def test_the_index_for_agents_is_up_to_date_and_complete() -> None:
    assert (DOCS / "llms.txt").read_text() == index()
    assert index().count("\n- [") == len(IN_NAVIGATION)
    assert "# Quickstart" in full_text()


def test_every_public_name_is_documented() -> None:
    names = page("docs/reference/client.md").sections()["Names in `reflexio`"]
    assert all(f"| `{name}` | " in names for name in reflexio.__all__)
