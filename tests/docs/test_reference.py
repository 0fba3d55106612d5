"""The pages of the reference that are written by hand name everything that exists, with its true default."""

import json
import re
from collections.abc import Iterator
from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import Any, get_args

import pytest
import typer.main
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from reflexio import Config, ReflexioError, errors
from reflexio.cli.app import app
from reflexio.client.endpoint import DEFAULT_URL
from reflexio.models import config as config_models
from reflexio.server.problems import TITLES, status_of
from reflexio.settings import Settings, variable
from tests.docs.markdown import ROOT, Page, first_cells, page, row

SETTINGS = page("docs/reference/settings.md")
HTTP = page("docs/reference/http.md")
CLIENT = page("docs/reference/client.md")
CLI = page("docs/reference/cli.md")
CONFIG = page("docs/reference/config.md")
ERRORS = page("docs/reference/errors.md")


def _default(field: FieldInfo) -> str:
    """A field's default as the tables write it."""
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel):
        return "its defaults"
    if isinstance(value, list) and value:
        return "one general entry"
    return f"`{json.dumps(value.value if isinstance(value, Enum) else value)}`"


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)


def _with_parts(*roots: type[BaseModel]) -> list[type[BaseModel]]:
    """The models and all that they are made of."""
    seen: dict[type[BaseModel], None] = {}
    waiting = list(roots)
    while waiting:
        model = waiting.pop()
        if model not in seen:
            seen[model] = None
            waiting += [part for field in model.model_fields.values() for part in _models_in(field.annotation)]
    return sorted(seen, key=lambda model: model.__name__)


# Settings


def test_every_setting_has_a_row_with_its_default() -> None:
    server = SETTINGS.sections()["Server"]
    assert first_cells(server) == {variable(each) for each in fields(Settings)}
    for each in fields(Settings):
        value = getattr(Settings(), each.name)
        said = row(server, variable(each))[1]
        assert said == (f"`{str(value).replace(str(Path.home()), '~')}`" if value else "none")


def test_the_client_reads_its_two_variables_and_no_other() -> None:
    client = SETTINGS.sections()["Client"]
    sources = [path.read_text() for path in (ROOT / "src" / "reflexio" / "client").rglob("*.py")]
    read = {name for source in sources for name in re.findall(r'environ\.get\("(\w+)"', source)}
    assert first_cells(client) == read
    assert row(client, "REFLEXIO_URL")[1] == f"`{DEFAULT_URL}`"


def _told(text: str) -> dict[str, str]:
    return {name: row(text, name)[1] for name in first_cells(text)}


# Command line


def _commands(command: Any, name: str) -> Iterator[tuple[str, set[str]]]:
    options = {each for option in command.params for each in (option.opts or [option.name])} - {"--help"}
    below = getattr(command, "commands", {})
    if options or not below:
        yield name, options
    for word, each in below.items():
        yield from _commands(each, f"{name} {word}")


def test_every_command_has_a_section_with_its_options() -> None:
    known = dict(_commands(typer.main.get_command(app), "reflexio"))
    told = {heading: first_cells(text) for heading, text in CLI.sections().items() if heading.startswith("reflexio")}
    assert told == known


# Configuration


def test_every_part_of_the_configuration_has_a_section_and_no_other_has() -> None:
    assert {model.__name__ for model in _with_parts(Config)} == set(CONFIG.sections()) - {"Configuration"}


@pytest.mark.parametrize("model", _with_parts(Config), ids=lambda model: model.__name__)
def test_every_configuration_field_has_a_row_with_its_default(model: type[BaseModel]) -> None:
    text = CONFIG.sections()[model.__name__]
    assert _told(text) == {name: _default(field) for name, field in model.model_fields.items()}


# Errors


def _error_classes() -> list[type[ReflexioError]]:
    return [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, errors.ReflexioError)]


def test_every_error_has_a_row_and_a_place_in_the_drawn_tree() -> None:
    names = {each.__name__ for each in _error_classes()}
    assert first_cells(ERRORS.sections()["Errors"]) == names
    assert names <= set(re.findall(r"\w+", errors.__doc__ or ""))


@pytest.mark.parametrize("kind", _error_classes(), ids=lambda kind: kind.__name__)
def test_an_error_is_told_with_the_status_it_becomes(kind: type[ReflexioError]) -> None:
    said = row(ERRORS.sections()["Errors"], kind.__name__)[1]
    if kind in (errors.ClientClosed, errors.ServerUnreachable, errors.ServerFailed):
        assert said == "none"
    else:
        assert said == str(status_of(kind.__new__(kind)))


def test_every_status_is_told() -> None:
    told = re.findall(r"^\| (\d{3}) \|", ERRORS.sections()["On the wire"], flags=re.MULTILINE)
    assert {int(status) for status in told} == set(TITLES)


# The pages themselves


@pytest.mark.parametrize("reference", [SETTINGS, HTTP, CLIENT, CLI, CONFIG, ERRORS], ids=lambda page: page.name)
def test_no_heading_stands_twice(reference: Page) -> None:
    headings = re.findall(r"^#+ (.+)$", reference.prose(), flags=re.MULTILINE)
    assert sorted(headings) == sorted(set(headings))


def test_presets_are_told_as_they_are() -> None:
    told = page("docs/how-to/configure.md").sections()["Presets and windows"]
    for preset in config_models.ExtractionPreset:
        assert row(told, preset.value)[1:] == [str(size) for size in preset.sizes]
