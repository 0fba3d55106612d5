"""Links inside the documentation lead to existing files and headings, and the README reaches every page."""

from pathlib import Path

import pytest

from tests.docs.markdown import PAGES, ROOT, Page


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_relative_links_lead_to_a_file_and_a_heading(path: Path) -> None:
    for link in Page(path).links():
        if link.startswith(("https://", "http://")):
            continue
        name, _, heading = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), f"{path.name}: {link}"
        if heading:
            assert heading in Page(target).anchors(), f"{path.name}: {link}"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_page_can_be_reached_from_the_readme(path: Path) -> None:
    assert path in _reachable(ROOT / "README.md")


def _reachable(start: Path) -> set[Path]:
    seen: set[Path] = set()
    waiting = [start]
    while waiting:
        here = waiting.pop()
        if here in seen or here.suffix != ".md":
            continue
        seen.add(here)
        names = [link.partition("#")[0] for link in Page(here).links() if "://" not in link]
        waiting += [(here.parent / name).resolve() for name in names if name]
    return seen
