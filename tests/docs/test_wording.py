"""The pages use our own distribution name, the README fits one screen, and the glossary contradicts itself nowhere."""

import re
from pathlib import Path

import pytest

from tests.docs.markdown import PAGES, Page, page

INSTALL = re.compile(r"pip install (?:-\S+ )*['\"]?(reflexio[\w-]*)")
GLOSSARY = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in page("docs/reference/glossary.md").lines
    if line.startswith("| ") and not line.startswith("| word ")
]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_pages_install_our_own_distribution(path: Path) -> None:
    assert set(INSTALL.findall(path.read_text())) <= {"reflexio-learn"}


def test_the_readme_fits_one_screen() -> None:
    assert len(page("README.md").lines) <= 60


def test_a_retired_word_stands_once_and_is_no_word_of_the_glossary() -> None:
    retired = [word for *_, cell in GLOSSARY for word in re.findall(r"`(\w+)`", cell)]
    words = {word for first, *_ in GLOSSARY for word in re.findall(r"\w+", first)}
    assert len(retired) > 20
    assert sorted(retired) == sorted(set(retired))
    assert not words & set(retired)


def test_every_decision_record_has_its_number_in_title_and_index() -> None:
    index = page("docs/decisions/README.md")
    records = [path for path in PAGES if path.parent == index.path.parent and path != index.path]
    assert {path.name for path in records} <= set(index.links())
    for path in records:
        assert Page(path).lines[0].startswith(f"# {path.name[:4]} ")
