"""Examples run as printed, one program a page, against a server that has just been started."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer.main

from reflexio.cli.app import app
from reflexio.server.app import create_app
from reflexio.settings import Settings
from tests.docs.markdown import PAGES, ROOT, Block, Page

LANGUAGES = {"python", "sh", "json", "text"}


def _runnable(page: Page) -> list[Block]:
    return [block for block in page.blocks() if block.language == "python" and not block.fragment]


WITH_PYTHON = [Page(path) for path in PAGES if _runnable(Page(path))]
LINES_OF_SHELL = [
    pytest.param(line, id=f"{Page(path).name}:{block.line + number}")
    for path in PAGES
    for block in Page(path).blocks()
    if block.language == "sh"
    for number, line in enumerate(block.code)
    if line.strip() and not line.startswith("#")
]


def _program(page: Page) -> str:
    """The page with all but its code left blank, so that an error names the page's own line."""
    lines = [""] * len(page.lines)
    for block in _runnable(page):
        lines[block.line - 1 : block.line - 1 + len(block.code)] = block.code
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.name)
def test_python_of_a_page_runs_and_prints_what_the_page_says(page: Page, server: str, tmp_path: Path) -> None:
    program = tmp_path / "page.py"
    program.write_text(_program(page))
    environment = {**os.environ, "REFLEXIO_URL": server, "REFLEXIO_API_KEY": "", "PYTHONWARNINGS": "error"}
    done = subprocess.run(
        [sys.executable, program],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"{page.name}:\n{done.stderr}"
    said = re.findall(r"^ *# > (.*)$", program.read_text(), flags=re.MULTILINE)
    assert done.stdout.splitlines() == said


def test_examples_exist() -> None:
    assert {page.name for page in WITH_PYTHON} >= {"README.md", "docs/quickstart.md", "docs/how-to/publish.md"}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_block_names_a_language_that_is_checked(path: Path) -> None:
    assert {block.language for block in Page(path).blocks()} <= LANGUAGES


def _parse(command: Any, words: list[str]) -> None:
    """Reads a command line as the program would, and runs nothing."""
    context = command.make_context("reflexio", list(words))
    if hasattr(command, "resolve_command"):
        rest = [*context._protected_args, *context.args]
        if rest:
            _, below, more = command.resolve_command(context, rest)
            _parse(below, more)


@pytest.mark.parametrize("line", LINES_OF_SHELL)
def test_shell_names_commands_options_targets_and_paths_that_exist(line: str) -> None:
    words = shlex.split(line, comments=True)
    while "=" in words[0]:
        name = words.pop(0).partition("=")[0]
        assert name in {*(f"REFLEXIO_{each.upper()}" for each in Settings.__dataclass_fields__), "REFLEXIO_URL"}
    match words:
        case ["reflexio", *rest]:
            _parse(typer.main.get_command(app), rest)
        case ["make", target]:
            assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
        case ["curl", *rest]:
            paths = [found for word in rest if (found := re.fullmatch(r"http://127\.0\.0\.1:8081(/[^?]*).*", word))]
            known = {*create_app(Settings()).openapi()["paths"], "/docs", "/openapi.json"}
            assert [each[1] for each in paths if each[1] in known], line
        case ["sqlite3" | "pip" | "cp" | "export" | "python", *_]:
            pass
        case _:
            pytest.fail(f"nobody checks {words[0]!r}: teach this test to")
