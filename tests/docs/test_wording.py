"""The pages use our own distribution name, the README fits one screen, and the glossary contradicts itself nowhere."""

import re
from pathlib import Path
from typing import Any

import pytest

from reflexio.client.aio import AsyncReflexioClient
from reflexio.client.sync import ReflexioClient
from reflexio.server.app import create_app
from reflexio.settings import Settings
from tests.docs.markdown import PAGES, Page, page

INSTALL = re.compile(r"pip install (?:-\S+ )*['\"]?(reflexio[\w-]*)")
DELETES_ALL = re.compile(r"delete_all_\w+|clear_user_data")
WARNING = "cannot be undone"
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


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_says_that_a_call_deletes_everything_before_it_shows_it(path: Path) -> None:
    shown = Page(path)
    for block in shown.blocks():
        if DELETES_ALL.search("\n".join(block.code)):
            assert WARNING in "\n".join(shown.lines[max(0, block.line - 5) : block.line - 1]), (
                f"{path.name}:{block.line}"
            )


def _deleting(client: type[Any]) -> list[str]:
    return [name for name in dir(client) if DELETES_ALL.fullmatch(name)]


@pytest.mark.parametrize("client", [AsyncReflexioClient, ReflexioClient])
def test_a_method_that_deletes_everything_says_so(client: type[Any]) -> None:
    assert len(_deleting(client)) == 6
    for name in _deleting(client):
        assert WARNING in getattr(client, name).__doc__, name


def test_a_route_that_deletes_everything_says_so() -> None:
    routes = create_app(Settings()).openapi()["paths"]
    deleting = [operation for path in routes if DELETES_ALL.search(path) for operation in routes[path].values()]
    assert len(deleting) == 6
    assert all(WARNING in operation["description"] for operation in deleting)
