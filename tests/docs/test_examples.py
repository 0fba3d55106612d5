"""The Python of each page runs as one program against a new server, and shell lines name what exists."""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import typer.main

from reflexio.cli.app import app
from reflexio.server.app import create_app
from reflexio.settings import Settings, variable
from tests.docs.markdown import PAGES, ROOT, Block, Page

LANGUAGES = {"python", "sh", "json", "toml", "text"}


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
    """The code of the page at its own line numbers, so that an error names the line of the page."""
    lines = [""] * len(page.lines)
    for block in _runnable(page):
        lines[block.line - 1 : block.line - 1 + len(block.code)] = block.code
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.name)
def test_python_of_a_page_runs_and_prints_what_the_page_says(page: Page, server: str, tmp_path: Path) -> None:
    program = tmp_path / "page.py"
    program.write_text(_program(page))
    environment = {**os.environ, "REFLEXIO_URL": server, "REFLEXIO_API_KEY": "", "PYTHONWARNINGS": "error"}
    completed = subprocess.run(
        [sys.executable, program],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert completed.returncode == 0, f"{page.name}:\n{completed.stderr}"
    expected = re.findall(r"^ *# > (.*)$", program.read_text(), flags=re.MULTILINE)
    assert completed.stdout.splitlines() == expected


def test_examples_exist() -> None:
    assert {page.name for page in WITH_PYTHON} >= {"README.md", "docs/quickstart.md", "docs/how-to/publish.md"}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_block_names_a_language_that_is_checked(path: Path) -> None:
    assert {block.language for block in Page(path).blocks()} <= LANGUAGES


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_configuration_of_other_programs_can_be_read_and_names_commands_that_exist(path: Path) -> None:
    for block in Page(path).blocks():
        if block.language in ("json", "toml") and not block.fragment:
            read = json.loads if block.language == "json" else tomllib.loads
            for arguments in _reflexio_commands(read("\n".join(block.code))):
                _parse(typer.main.get_command(app), arguments)


def _reflexio_commands(configuration: Any) -> Iterator[list[str]]:
    if isinstance(configuration, dict):
        if configuration.get("command") == "reflexio":
            yield configuration["args"]
        for part in configuration.values():
            yield from _reflexio_commands(part)


def _parse(command: Any, words: list[str]) -> None:
    """Parses a command line as the program would, and runs nothing."""
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
        assert name in {*map(variable, fields(Settings)), "REFLEXIO_URL"}
    match words:
        case ["reflexio", *rest]:
            _parse(typer.main.get_command(app), rest)
        case ["make", target]:
            assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
        case ["curl", *rest]:
            urls = [match for word in rest if (match := re.fullmatch(r"http://127\.0\.0\.1:8081(/[^?]*).*", word))]
            known = {*create_app(Settings()).openapi()["paths"], "/docs", "/openapi.json"}
            assert [url[1] for url in urls if url[1] in known], line
        case ["sqlite3" | "pip" | "cp" | "export" | "python", *_]:
            pass
        case _:
            pytest.fail(f"this test cannot check the command {words[0]!r}: add a case for it")
